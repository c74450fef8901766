// Pages of an owner: their visitors, and what they show.
import { describe, expect } from 'vitest'
import { BASE_URL, startTestService, type TestService, test } from '../../../../test/service.ts'

const OWN = { 'sec-fetch-site': 'same-origin' }

/** Signs a browser in; returns the headers of its requests. */
async function signedIn(service: TestService, token = service.token): Promise<Record<string, string>> {
  const { headers } = await service.call('POST', '/session', { headers: { ...OWN, token } })
  return { ...OWN, accept: 'text/html', cookie: headers.getSetCookie()[0]?.split(';')[0] ?? '' }
}

describe('the pages', () => {
  test('lead a visitor without a session to the sign-in page, and from there back', async ({ service }) => {
    const answer = await service.get('/library?q=a%20b&sort=title')
    const next = '/session?next=%2Flibrary%3Fq%3Da%2520b%26sort%3Dtitle'
    expect([answer.status, answer.headers.get('location')]).toEqual([303, BASE_URL + next])
    expect((await service.get(next)).text).toContain('name="next" value="/library?q=a%20b&amp;sort=title"')
  })

  test('say that a session has ended', async ({ service }) => {
    const headers = await signedIn(service)
    await service.deps.pool.query('delete from browser_sessions')
    const { status, headers: answered } = await service.get('/library', headers)
    expect([status, answered.get('location')]).toEqual([303, `${BASE_URL}/session?next=%2Flibrary&ended=1`])
    expect((await service.get('/session?next=%2Flibrary&ended=1')).text).toContain('Your session has ended')
  })

  test('are for their visitor alone, under a policy without other hosts or inline code', async ({ service }) => {
    const { status, text, headers } = await service.get('/library', await signedIn(service))
    expect(status).toBe(200)
    expect(headers.get('cache-control')).toBe('private, no-store')
    const policy = headers.get('content-security-policy')
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'; ")
    expect(policy).toContain("media-src 'self' https://files.example; frame-src 'self'")
    expect(text).not.toMatch(/ style=| on\w+=|<style|<script(?! type="(module" src="|application\/json"))/)
    expect(text).toContain('href="https://media.example/library" aria-current="page"')
    expect(text).not.toContain('/admin')
  })

  test('are in the language of the browser', async ({ service }) => {
    const headers = { ...(await signedIn(service)), 'accept-language': 'de' }
    const { text } = await service.get('/library', headers)
    expect(text).toContain('<html lang="de">')
    expect(text).toContain('>Abmelden</button>')
  })

  test('lead administrators to their pages', async ({ service }) => {
    const { token } = await service.newToken({ scopes: ['admin'] })
    expect((await service.get('/library', await signedIn(service, token))).text).toContain('/admin')
  })

  test('do not exist without MEDIA_LIBRARY', async () => {
    const service = await startTestService({ MEDIA_LIBRARY: 'off' })
    expect((await service.get('/library')).status).toBe(404)
    await service.close()
  })
})
