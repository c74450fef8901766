// The page at `/` as it is served; in a browser: home-files.slow.test.ts and test/browser.slow.test.ts.
import { describe, expect } from 'vitest'
import { BASE_URL, startTestService, type TestService, test } from '../../../../test/service.ts'

const SCRIPT = { 'sec-fetch-site': 'same-origin', 'x-media': '1' }
const OPENED = { 'sec-fetch-site': 'none' }

async function signedIn(service: TestService, token: string): Promise<string> {
  const { headers } = await service.call('POST', '/session', { headers: { ...SCRIPT, token } })
  return headers.getSetCookie()[0]?.split(';')[0] ?? ''
}

describe('the page at /', () => {
  test('asks for a token and offers a sign-in that comes back, for a visitor', async ({ service }) => {
    const { status, text, headers } = await service.get('/')
    expect([status, headers.get('cache-control'), headers.get('vary')]).toEqual([
      ...[200, 'public, max-age=300', expect.stringContaining('Accept-Language, Cookie')],
    ])
    expect(text).toContain('<input id="token"')
    expect(text).toContain(`<a href="${BASE_URL}/session?next=%2F">Sign in instead</a>`)
    expect(headers.get('content-security-policy')).toContain("form-action 'none'")
  })

  test('names the token of a browser that is signed in, in place of the field, for this browser alone', async ({
    service,
  }) => {
    const cookie = await signedIn(service, service.token)
    const { text, headers } = await service.get('/', { ...OPENED, cookie })
    expect(headers.get('cache-control')).toBe('private, no-store')
    expect(text).toContain('Signed in with the token <strong>test</strong>')
    expect(text).toContain(`href="${BASE_URL}/library"`)
    expect(text).not.toContain('id="token"')
    expect(text).not.toContain(service.token)
    const [{ id }] = (await service.deps.pool.query("select id from api_tokens where name = 'test'")).rows
    expect(text).toContain(`"token":"${id}"`)
    const [, form_token = ''] = /name="form_token" value="([\w-]+)"/.exec(text) ?? []
    expect(headers.get('content-security-policy')).toContain(`form-action ${BASE_URL}/session/end`)
    const init = { headers: { ...SCRIPT, cookie }, body: new URLSearchParams({ form_token }) }
    expect((await service.call('POST', '/session/end', init)).status).toBe(303)
    const ended = await service.get('/', { ...OPENED, cookie })
    expect(ended.text).toContain('Your session has ended.')
    expect(ended.headers.getSetCookie()[0]).toContain('Max-Age=0')
  })

  test('shows no session to a page of another site', async ({ service }) => {
    const cookie = await signedIn(service, service.token)
    const { text } = await service.get('/', { 'sec-fetch-site': 'cross-site', cookie })
    expect(text).toContain('<input id="token"')
    expect(text).not.toContain('form_token')
  })

  test('is in the language of the browser, its scripts too', async ({ service }) => {
    const { text } = await service.get('/', { 'accept-language': 'de-AT, en;q=0.5' })
    expect(text).toContain('<html lang="de">')
    expect(text).toContain('GIF, MP4 oder WebM, bis zu 30 Sekunden und 150 MB')
    const { words } = JSON.parse(/id="page-data">(.+)<\/script>/.exec(text)?.[1] ?? '')
    expect(words.waiting).toBe('Wartet')
  })

  test('offers several files and addresses', async ({ service }) => {
    const { text } = await service.get('/')
    expect(text).toMatch(/<input id="file" type="file" multiple accept="image\/gif,/)
    expect(text).toContain('<textarea id="source"')
  })

  test('offers no sign-in where there is none', async () => {
    const off = await startTestService({ MEDIA_LIBRARY: 'off' })
    const { text, headers } = await off.get('/')
    expect(text).not.toContain('/session')
    expect(headers.get('vary')).not.toContain('Cookie')
    await off.close()
  })
})
