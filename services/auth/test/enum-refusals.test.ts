// A value that is none of a fixed set is refused with the whole set, wherever a request has such a member.
import { enumMembers, type Given } from '@services/common/testing/http/enum-members'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from './service.ts'
import { SMS_GATEWAY } from './sms-config.ts'
import { PASSKEYS } from './webauthn/passkeys.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({
    ...SMS_GATEWAY,
    ...PASSKEYS,
    AUTH_PASSKEY_SIGNUP_ENABLED: 'true',
    AUTH_OAUTH_SERVER_ENABLED: 'true',
    AUTH_OAUTH_SERVER_ALLOW_DYNAMIC_REGISTRATION: 'true',
    AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
    AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
    AUTH_EXTERNAL_WEB3_ETHEREUM_ENABLED: 'true',
    AUTH_EXTERNAL_GITHUB_ENABLED: 'true',
    AUTH_EXTERNAL_GITHUB_CLIENT_ID: 'client',
    AUTH_EXTERNAL_GITHUB_SECRET: 'secret',
    AUTH_EXTERNAL_GITHUB_REDIRECT_URI: 'https://auth.example/callback',
  })
})
afterAll(() => service.close())

const phone = '+4915112345678'
const code_challenge = 'c'.repeat(43)

/** Values that a request needs before it reaches the member. */
const givenOf = (
  factorId: string,
  { client_id, client_secret }: Record<'client_id' | 'client_secret', string>,
): Record<string, Given> => ({
  'POST /oauth/token body grant_type': { body: { client_id, client_secret } },
  'POST /signup body channel': { body: { email: undefined, phone } },
  'POST /token body chain': { query: { grant_type: 'web3' } },
  'POST /otp body channel': { body: { email: undefined, phone } },
  'POST /factors/{factor_id}/challenge body channel': { id: factorId },
  ...Object.fromEntries(
    ['token_endpoint_auth_method', 'token_endpoint_auth_signing_alg'].map((member) => [
      `PUT /admin/oauth/clients/{client_id} body ${member}`,
      { id: client_id },
    ]),
  ),
  ...Object.fromEntries(
    [
      '/signup',
      '/passkeys/signup/verify',
      '/otp',
      '/magiclink',
      '/recover',
      '/resend',
      '/invite',
      '/admin/generate_link',
    ].map((path) => [`POST ${path} body code_challenge_method`, { body: { code_challenge } }]),
  ),
  'PUT /user body code_challenge_method': { body: { code_challenge } },
  ...Object.fromEntries(
    ['/authorize', '/user/identities/authorize'].map((path) => [
      `GET ${path} query code_challenge_method`,
      { query: { provider: 'github', code_challenge } },
    ]),
  ),
})

const EXEMPT: RegExp[] = [
  // It cannot change, whatever the value.
  /^PUT \/admin\/oauth\/clients\/\{client_id\} body client_type$/,
  // An error code of OAuth is the text (contract/auth-core.md 11.4).
  /^POST \/token query grant_type$/,
  // A token of no known type is a wrong one, so that an edited link is answered in its flow.
  / \/verify (query|body) type$/,
]

test('each refusal of such a value names the others', async () => {
  const { accessToken } = await service.signedIn()
  const user = { authorization: `Bearer ${accessToken}` }
  const factor = await service.post('/factors', { factor_type: 'phone', friendly_name: 'phone', phone }, user)
  expect(factor.status).toBe(200)
  const redirect = {
    redirect_uris: ['https://app.example/callback'],
    token_endpoint_auth_method: 'client_secret_post',
  }
  const client = await service.post('/admin/oauth/clients', redirect, service.admin)
  const { body: document } = await service.get('/openapi.json')
  const members = enumMembers(document, givenOf(factor.body.id, client.body), crypto.randomUUID())
  expect(EXEMPT.filter((exempt) => !members.some(({ name }) => exempt.test(name)))).toEqual([])
  const refused = members.filter(({ name }) => !EXEMPT.some((exempt) => exempt.test(name)))
  expect(refused.length).toBeGreaterThan(15)
  for (const { name, method, url, values, body } of refused) {
    const answer = await service.app.inject({
      ...{ method: method as 'POST', url, headers: /^\/(admin|invite)\b/.test(url) ? service.admin : user },
      ...(body && { payload: body }),
    })
    // A redirect carries its refusal to the application.
    const text = decodeURIComponent(`${answer.body} ${answer.headers.location ?? ''}`).replaceAll('+', ' ')
    expect([name, text, values.filter((value) => !text.includes(value))]).toEqual([name, text, []])
  }
})
