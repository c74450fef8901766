import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { type ProviderSignIns, refusalOf, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { text } from '../../../test/upstream.ts'
import type { Instead } from '../../../test/upstreams/sign-in-providers.ts'

let all: ProviderSignIns
beforeAll(async () => {
  all = await startProviderSignIns()
})
afterEach(() => all.far.answer('twitter', 'request'))
afterAll(() => all.close())

const twitter = (brings: Record<string, string>) => all.signIn('twitter', all.newAccount('twitter'), { brings })

test('a refusal by the user is reported', async () => {
  expect(refusalOf(await twitter({ denied: 'a-request-token', oauth_verifier: '' }))).toMatchObject({
    status: 302,
    error: 'access_denied',
    error_description: 'The user denied access',
  })
})

test.each<Record<string, string>>([{ oauth_token: 'of-another-sign-in' }, { oauth_token: '' }, { oauth_verifier: '' }])(
  'a browser that brings %j back gets nowhere, and nobody is asked',
  async (brings) => {
    expect(refusalOf(await twitter(brings))).toMatchObject({
      error: 'invalid_request',
      error_code: 'bad_oauth_callback',
    })
    expect(all.far.requests('twitter').map(({ path }) => path)).toEqual(['/oauth/request_token'])
  },
)

test('a verifier that is wrong is refused', async () => {
  const refusal = refusalOf(await twitter({ oauth_verifier: 'wrong' }))
  expect(refusal).toMatchObject({ error: 'server_error', error_description: 'Unable to retrieve access token' })
})

test.each<[string, Instead]>([
  ['answers an error', text('{"errors":[{"code":32}]}', 401)],
  ['answers no token', text('oauth_callback_confirmed=true')],
  ['closes the connection', (response) => void response.destroy()],
])('GET /authorize asks to try again where it %s', async (_how, how) => {
  all.far.answer('twitter', 'request', how)
  const { status, body } = await all.service.get('/authorize?provider=twitter')
  expect({ status, code: body.error_code }).toEqual({ status: 503, code: 'provider_unavailable' })
})
