import { AuthClient, type Provider } from '@supabase/auth-js'
import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from 'vitest'
import { type ProviderSignIns, signedInUser, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { type Answer, fragmentOf } from '../../../test/service.ts'
import { PROVIDER_EXAMPLES } from '../../../test/upstreams/provider-examples.ts'
import { ACCESS_TOKEN, CALLBACK, clientOf, codeOf } from '../../../test/upstreams/sign-in-providers.ts'
import { oauthParameters } from '../../../test/upstreams/twitter-example.ts'
import { EXTERNAL_PROVIDERS, type ExternalProvider, FURTHER_PROVIDERS } from '../../config/external-providers.ts'

let all: ProviderSignIns
beforeAll(async () => {
  all = await startProviderSignIns({ AUTH_MAILER_ALLOW_UNVERIFIED_EMAIL_SIGN_INS: 'true' })
})
afterAll(() => all.close())

test('every provider has an example here', () => {
  expect(Object.keys(PROVIDER_EXAMPLES).sort()).toEqual(EXTERNAL_PROVIDERS.toSorted())
})

// tsc checks it, not the run of the tests.
test('every name in the types of the public client is a built-in provider', () => {
  expectTypeOf<Exclude<Provider, `custom:${string}`>>().toExtend<ExternalProvider>()
})

test.each(FURTHER_PROVIDERS)('the public client signs in at %s', async (name) => {
  const client = new AuthClient({ url: 'https://auth.example', autoRefreshToken: false })
  const options = { redirectTo: 'https://site.example/app', skipBrowserRedirect: true }
  const { data } = await client.signInWithOAuth({ provider: name as Provider, options })
  const begun = new URL(String(data.url))
  const location = String((await all.service.get(begun.pathname + begun.search)).headers.location)
  const callback = new URLSearchParams(all.far.visit(name, new URL(location), all.newAccount(name)))
  const { headers } = await all.service.get(`/callback?${callback}`)
  expect(String(headers.location)).toMatch(/^https:\/\/site\.example\/app#access_token=/)
})

const stepOf = (name: string, path: string) => PROVIDER_EXAMPLES[name]?.endpoints[path.split('?')[0] as string]?.step
const requestsFor = (name: string, step: string) =>
  all.far.requests(name).filter(({ path }) => stepOf(name, path) === step)

describe.each(Object.entries(PROVIDER_EXAMPLES))('%s', (name, example) => {
  const isOAuth1 = example.token.authentication === 'oauth1'

  test('sends the browser to its authorize address with the parameters it expects', async () => {
    const { location } = await all.signIn(name, all.newAccount(name))
    expect(location.origin + location.pathname).toBe(all.far.base(name) + example.authorize.path)
    const { pkce, nonce, parameters } = example.authorize
    const ours = { client_id: clientOf(name).id, redirect_uri: CALLBACK, response_type: 'code' }
    expect(Object.fromEntries(location.searchParams)).toEqual({
      ...(isOAuth1 ? {} : { ...ours, state: expect.stringMatching(/^[0-9a-f-]{36}$/) }),
      ...(pkce && { code_challenge: expect.stringMatching(/^[\w-]{43}$/), code_challenge_method: 'S256' }),
      ...(nonce && { nonce: expect.stringMatching(/^[\w-]{22}$/) }),
      ...parameters,
    })
  })

  test('asks for the profile with the access token', async () => {
    await all.signIn(name, all.newAccount(name))
    const asked = requestsFor(name, 'profile')
    expect(asked.map(({ method, path }) => `${method} ${path}`)).toEqual(
      example.profiles.map(({ path }) => `GET ${path}`),
    )
    for (const [index, request] of asked.entries()) {
      expect(request.headers).toMatchObject(example.profiles[index]?.headers ?? {})
      if (isOAuth1) expect(oauthParameters(request).oauth_token).toBe(ACCESS_TOKEN)
      else expect(request.headers.authorization).toBe(`Bearer ${ACCESS_TOKEN}`)
    }
  })

  test('gives the user an identity, and a verified address only where it has verified it', async () => {
    const account = all.newAccount(name)
    const signIn = await all.signIn(name, account)
    expect(signIn.answer.status).toBe(302)
    expect(fragmentOf(signIn.answer as Answer)).toMatchObject({ provider: name, provider_token: ACCESS_TOKEN })
    const user = await signedInUser(all.service, signIn)
    expect(user.identities).toHaveLength(1)
    expect(user.identities[0].provider).toBe(name)
    expect(user.identities[0].identity_data).toEqual({
      sub: account.id,
      provider_id: account.id,
      email: account.email,
      email_verified: example.isVerified,
      phone_verified: false,
      ...example.identity(all.far.base(name), account),
    })
    expect(example.isVerified ? user.email : user.new_email).toBe(account.email)
    expect([user.email !== '', Boolean(user.email_confirmed_at)]).toEqual([example.isVerified, example.isVerified])
  })
})

/** Twitter's upstream checks the signatures itself. */
const OAUTH2 = Object.entries(PROVIDER_EXAMPLES).filter(([, { token }]) => token.authentication !== 'oauth1')

test.each(OAUTH2)('%s: the code is redeemed once, authenticated as it documents', async (name, example) => {
  await all.signIn(name, all.newAccount(name))
  const [request, ...more] = requestsFor(name, 'token')
  expect(more).toEqual([])
  const { id, secret } = clientOf(name)
  const basic = Buffer.from(`${id}:${encodeURIComponent(secret)}`).toString('base64')
  const isBasic = example.token.authentication === 'basic'
  expect(request?.method).toBe('POST')
  expect(request?.headers.authorization).toBe(isBasic ? `Basic ${basic}` : undefined)
  expect(request?.headers['content-type']).toMatch('application/x-www-form-urlencoded')
  expect(request?.form).toEqual({
    grant_type: 'authorization_code',
    code: codeOf(name),
    redirect_uri: CALLBACK,
    ...(!isBasic && { client_id: id, client_secret: secret }),
    ...(example.authorize.pkce && { code_verifier: expect.stringMatching(/^[\w-]{43}$/) }),
    ...example.token.parameters,
  })
})
