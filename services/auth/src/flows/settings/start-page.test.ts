import { PAGE_POLICY } from '@services/common/pages/document'
import { expect } from 'vitest'
import { test } from '../../../test/service.ts'

const BROWSER = { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' }

test('a browser at the base URL gets a page with three working links', async ({ service }) => {
  const page = await service.app.inject({ url: '/', headers: BROWSER })
  expect(page.statusCode).toBe(200)
  expect(page.headers['content-type']).toBe('text/html; charset=utf-8')
  const links = [...page.body.matchAll(/<a href="([^"]+)"/g)].map(([, href]) => new URL(href as string))
  expect(links.map(({ pathname }) => pathname)).toEqual(['/docs', '/settings', '/health'])
  for (const { pathname } of links) expect((await service.app.inject(pathname)).statusCode).toBe(200)
})

test('leads to the pages and the console where they are enabled', async ({ service }) => {
  const at = await service.with({ AUTH_HOSTED_PAGES_ENABLED: 'true', AUTH_CONSOLE_ENABLED: 'true' })
  const { body } = await at.app.inject({ url: '/', headers: BROWSER })
  const paths = [...body.matchAll(/<a href="https:\/\/auth\.example([^"]+)"/g)].map(([, path]) => path as string)
  expect(paths.slice(0, 2)).toEqual(['/ui/sign-in', '/console'])
  for (const path of paths) expect((await at.app.inject(path)).statusCode).toBe(200)
  await at.close()
})

test('the page runs no script, has the policy of all pages, and loads styles that are there', async ({ service }) => {
  const page = await service.app.inject({ url: '/', headers: BROWSER })
  expect(page.body).not.toMatch(/<script|<style| style=| on\w+=/)
  expect(page.headers).toMatchObject({
    'content-security-policy': PAGE_POLICY,
    'x-content-type-options': 'nosniff',
    'cache-control': 'no-store',
    vary: expect.stringContaining('accept'),
  })
  const styles = [...page.body.matchAll(/<link rel="stylesheet" href="([^"]+)"/g)].map(([, href]) => href as string)
  expect(styles).not.toEqual([])
  for (const href of styles) expect((await service.app.inject(href)).statusCode).toBe(200)
})

test.for([
  { caller: 'curl', accept: '*/*' },
  { caller: 'an application', accept: 'application/json' },
  { caller: 'one that says nothing', accept: undefined },
])('$caller at the base URL is told in JSON that nothing is there', async ({ accept }, { service }) => {
  const answer = await service.app.inject({ url: '/', headers: accept ? { accept } : {} })
  expect(answer.statusCode).toBe(404)
  expect(answer.json()).toMatchObject({ code: 404, error_code: 'not_found' })
})
