import { perFile } from '@services/common/testing/per-file'
import { test as base, expect } from 'vitest'
import { startTestService, type TestService } from '../../test/service.ts'

const test = base.extend<object & { service: TestService }>({
  service: perFile(() => startTestService({ AUTH_HOSTED_PAGES_ENABLED: 'true', AUTH_CONSOLE_ENABLED: 'true' })),
})

test('the page has nothing inline, and only files of the service run in it', async ({ service }) => {
  const { status, text, headers } = await service.get('/console')
  expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8'])
  expect(headers['content-security-policy']).toBe(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
      "form-action 'self'; frame-ancestors 'none'; base-uri 'none'; " +
      "require-trusted-types-for 'script'; trusted-types lit-html",
  )
  expect(headers['cache-control']).toBe('no-store')
  expect(text).not.toMatch(/<script(?![^>]*\bsrc=)|<style|\bstyle=|\bon\w+=|https?:\/\//)
  expect((await service.get('/console/')).headers.location).toBe('../console')
})

test('all its modules are there, each under the version of its text, and load nothing from elsewhere', async ({
  service,
}) => {
  const { text: page } = await service.get('/console')
  const first = [...page.matchAll(/(?:src|href)="(console\/assets\/[^"]+)"/g)].map(([, path]) => `/${path}`)
  const seen = new Set<string>()
  const open = async (path: string): Promise<void> => {
    if (seen.has(path)) return
    seen.add(path)
    const { status, text, headers } = await service.get(path)
    expect([path, status]).toEqual([path, 200])
    expect(headers['cache-control']).toBe('public, max-age=31536000, immutable')
    expect(text).not.toMatch(/sourceMappingURL|\beval\(|new Function/)
    for (const [, imported = ''] of text.matchAll(/from ?["'](\.[^"']+)["']/g)) {
      const { pathname, search } = new URL(imported, `http://a${path}`)
      await open(pathname + search)
    }
  }
  for (const path of first) await open(path)
  const main = first.find((path) => path.includes('/main.js')) ?? ''
  expect(seen.size).toBeGreaterThan(15)
  // A page of before an upgrade gets the new modules, and a module of before gets none of the new ones.
  const old = await service.get(main.replace(/v=\w+/, 'v=000000000000'))
  expect([old.status, old.headers['cache-control']]).toEqual([200, 'no-cache'])
  const imported = [...seen].filter((path) => !first.includes(path))
  expect(imported.length).toBeGreaterThan(15)
  for (const path of imported) {
    const { status, headers } = await service.get(path.replace(/=\w+$/, '=000000000000'))
    expect([path, status, headers['cache-control']]).toEqual([path, 404, 'no-store'])
  }
  expect((await service.get('/console/assets/lit.d.ts')).status).toBe(404)
  expect((await service.get('/console/assets/../console-session.ts')).status).toBe(404)
})
