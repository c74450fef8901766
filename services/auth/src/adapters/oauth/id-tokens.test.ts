import { exportSPKI, generateKeyPair, SignJWT } from 'jose'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { type ProviderSignIns, refusalOf, signedInUser, startProviderSignIns } from '../../../test/provider-sign-in.ts'
import { json, text } from '../../../test/upstream.ts'
import {
  clientOf,
  type Instead,
  type Keys,
  type SignInProviders,
  sign,
} from '../../../test/upstreams/sign-in-providers.ts'
import { createProviders, PROVIDERS } from '../providers/index.ts'

let all: ProviderSignIns
beforeAll(async () => {
  all = await startProviderSignIns()
})
afterEach(() => all.far.forge())
afterAll(() => all.close())

type Forge = Exclude<Parameters<SignInProviders['forge']>[0], undefined>
type Claims = Parameters<Forge>[0]

const without = (claim: string) => (claims: Claims, keys: Keys) => sign({ ...claims, [claim]: undefined }, keys)
const withClaims = (others: Claims) => (claims: Claims, keys: Keys) => sign({ ...claims, ...others }, keys)
const encoded = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
const longAgo = Math.floor(Date.now() / 1000) - 3600

const HOSTILE: Record<string, Forge> = {
  'without a signature': (claims) => `${encoded({ alg: 'none' })}.${encoded(claims)}.`,
  'signed with the public key as if it were a shared secret': async (claims, { publicKey }) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'the-key' })
      .sign(new TextEncoder().encode(await exportSPKI(publicKey))),
  'signed with our own secret': (claims) =>
    new SignJWT(claims)
      .setProtectedHeader({ alg: 'HS256', kid: 'the-key' })
      .sign(new TextEncoder().encode('a-secret-of-the-tests-with-32-bytes-or-more')),
  'signed with another key of the same name': async (claims) => sign(claims, await generateKeyPair('RS256')),
  'changed after it was signed': async (claims, keys) => {
    const [header, , signature] = (await sign(claims, keys)).split('.')
    return [header, encoded({ ...claims, sub: 'somebody-else' }), signature].join('.')
  },
  'made for another client': withClaims({ aud: 'another-client' }),
  'made for several clients, by another one': (claims, keys) =>
    sign({ ...claims, aud: [claims.aud, 'another-client'], azp: 'another-client' }, keys),
  'by another issuer': withClaims({ iss: 'https://issuer.example' }),
  'by an issuer whose name begins like the right one': (claims, keys) =>
    sign({ ...claims, iss: `${claims.iss}.evil.example` }, keys),
  'that has expired': withClaims({ iat: longAgo, exp: longAgo + 60 }),
  'that is not valid yet': withClaims({ nbf: longAgo + 7200 }),
  'of another sign-in': withClaims({ nonce: 'of-another-sign-in' }),
  'without a nonce': without('nonce'),
  'without an audience': without('aud'),
  'without an issuer': without('iss'),
  'without an end': without('exp'),
  'of another access token': withClaims({ at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' }),
  'that is none': () => 'not.a.token',
}

/** Providers whose id_tokens never have the nonce. */
const WITHOUT_NONCE = ['linkedin_oidc', 'vercel_marketplace']

describe.each(['apple', 'azure', 'google', 'slack_oidc', ...WITHOUT_NONCE])('%s', (name) => {
  const hostile = Object.entries(HOSTILE).filter(
    ([kind]) => kind !== 'without a nonce' || !WITHOUT_NONCE.includes(name),
  )
  test.each(hostile)('an id_token %s signs no user in', async (_kind, forge) => {
    const account = all.newAccount(name)
    all.far.forge(forge)
    expect(refusalOf(await all.signIn(name, account))).toMatchObject({
      status: 302,
      to: 'https://site.example/app',
      error: 'server_error',
      error_description: 'Error getting user profile from external provider',
    })
    all.far.forge()
    const signIn = await all.signIn(name, account)
    expect(await signedInUser(all.service, signIn)).toMatchObject({ email: account.email })
  })
})

describe('a realm of keycloak that signs with a secret of its own', () => {
  const realmSecret = new TextEncoder().encode('a secret that the realm tells no client of it')
  const signed = (claims: Claims) =>
    new SignJWT({ iat: Math.floor(Date.now() / 1000), exp: Math.floor(Date.now() / 1000) + 300, ...claims })
      .setProtectedHeader({ alg: 'HS256', typ: 'JWT', kid: '0a1b2c3d-0000-4000-8000-000000000000' })
      .sign(realmSecret)
  const refusal = {
    status: 302,
    error: 'server_error',
    error_description: 'Error getting user profile from external provider',
  }

  test('signs in the account that its profile describes', async () => {
    all.far.forge(signed)
    const account = all.newAccount('keycloak')
    const user = await signedInUser(all.service, await all.signIn('keycloak', account))
    expect(user).toMatchObject({ email: account.email, app_metadata: { providers: ['keycloak'] } })
  })

  test.each([
    ['of another account', json({ sub: 'somebody-else', email: 'a@keycloak.example', email_verified: true })],
    ['without an account', json({ email: 'a@keycloak.example', email_verified: true })],
    ['that cannot be read', text('', 500)],
  ])('signs in no user by a profile %s', async (_which, profile) => {
    all.far.forge(signed)
    all.far.answer('keycloak', 'profile', profile)
    expect(refusalOf(await all.signIn('keycloak', all.newAccount('keycloak')))).toMatchObject(refusal)
    all.far.answer('keycloak', 'profile')
  })

  test.each<[string, Claims]>([
    ['for another client', { aud: 'another-client' }],
    ['by another issuer', { iss: 'https://issuer.example' }],
    ['that has expired', { iat: longAgo, exp: longAgo + 60 }],
    ['of another sign-in', { nonce: 'of-another-sign-in' }],
    ['of another access token', { at_hash: 'AAAAAAAAAAAAAAAAAAAAAA' }],
  ])('signs in no user by an id_token %s', async (_which, claims) => {
    all.far.forge((usual) => signed({ ...usual, ...claims }))
    expect(refusalOf(await all.signIn('keycloak', all.newAccount('keycloak')))).toMatchObject(refusal)
  })

  test('is not believed from an application', async () => {
    const { id, email } = all.newAccount('keycloak')
    const id_token = await signed({ iss: all.far.base('keycloak'), aud: clientOf('keycloak').id, sub: id, email })
    const { status, body } = await all.service.post('/token?grant_type=id_token', { provider: 'keycloak', id_token })
    expect([status, body.error_description]).toEqual([400, 'Bad ID token'])
  })
})

/** Kinds that are signed by a secret: a profile of the same account proves them. */
const BY_SECRET = ['signed with the public key as if it were a shared secret', 'signed with our own secret']

test.each(Object.entries(HOSTILE).filter(([kind]) => !BY_SECRET.includes(kind)))(
  'keycloak: an id_token %s signs no user in, whatever its profile says',
  async (_kind, forge) => {
    all.far.forge(forge)
    expect(refusalOf(await all.signIn('keycloak', all.newAccount('keycloak')))).toMatchObject({
      error_description: 'Error getting user profile from external provider',
    })
  },
)

const KEYS_AWAY: Record<string, Instead> = {
  'answers 500': text('', 500),
  'answers garbage': text('{'),
  'answers no keys': json({}),
  'answers too much': (response) => void response.writeHead(200).end('x'.repeat(2 * 1024 * 1024)),
  'closes the connection': (response) => void response.destroy(),
}

describe('an id_token that an application brings while its provider', () => {
  const bring = async (name: string) => {
    all.service.deps.providers = await createProviders(all.service.deps.config)
    const { id, email } = all.newAccount(name)
    const claims = { iss: all.far.base(name), aud: clientOf(name).id, sub: id, email, email_verified: true }
    const grant = { provider: name, id_token: await all.far.idToken(claims) }
    const { status, body } = await all.service.post('/token?grant_type=id_token', grant)
    return [status, body.error_code]
  }

  test.each(Object.entries(KEYS_AWAY))('%s, asked for its keys, may be good: try again', async (_how, how) => {
    all.far.answer('google', 'keys', how)
    expect(await bring('google')).toEqual([503, 'provider_unavailable'])
    all.far.answer('google', 'keys')
    expect(await bring('google')).toEqual([200, undefined])
  })

  test('does not say where its keys are may be good too', async () => {
    expect(await bring('snapchat')).toEqual([503, 'provider_unavailable'])
  })
})

test('the keys of a provider are kept: the next sign-in asks it for none', async () => {
  const keysAsked = () => all.far.requests('google').filter(({ path }) => path === '/oauth2/v3/certs')
  all.service.deps.providers = await createProviders(all.service.deps.config)
  await all.signIn('google', all.newAccount('google'))
  expect(keysAsked()).toHaveLength(1)
  await all.signIn('google', all.newAccount('google'))
  expect(keysAsked()).toHaveLength(0)
})

test.each(['https://appleid.apple.com', 'https://account.apple.com'])('apple may call itself %s', async (iss) => {
  all.far.forge(withClaims({ iss }))
  const user = await signedInUser(all.service, await all.signIn('apple', all.newAccount('apple')))
  expect(user.identities[0].identity_data.iss).toBe(iss)
})

const ID = '11111111-2222-3333-4444-555555555555'
const OTHER_ID = '99999999-2222-3333-4444-555555555555'
const LOGIN = 'https://login.microsoftonline.com'

describe('azure takes tokens of', () => {
  const isIssuer = (base: string | undefined, issuer: string) => {
    const endpoints = PROVIDERS.azure.endpoints(base)
    return 'idTokens' in endpoints && endpoints.idTokens?.isIssuer(issuer)
  }

  test.each([
    ['any tenant', undefined, `${LOGIN}/${ID}/v2.0`],
    ['any tenant, with a slash', undefined, `${LOGIN}/${ID}/v2.0/`],
    ['any company', `${LOGIN}/organizations`, `${LOGIN}/${ID}/v2.0`],
    [
      'any tenant of a national cloud',
      'https://login.microsoftonline.us/common',
      `https://login.microsoftonline.us/${ID}/v2.0`,
    ],
    ['private accounts', `${LOGIN}/consumers`, `${LOGIN}/9188040d-6c67-4c5b-b112-36a304b66dad/v2.0`],
    ['the tenant that was named', `${LOGIN}/${ID}`, `${LOGIN}/${ID}/v2.0`],
    ['an external tenant', `https://contoso.ciamlogin.com/${ID}`, `https://${ID}.ciamlogin.com/${ID}/v2.0`],
    [
      'an external tenant by its own name',
      `https://contoso.ciamlogin.com/${ID}`,
      `https://contoso.ciamlogin.com/${ID}/v2.0`,
    ],
  ])('%s', (_of, base, issuer) => {
    expect(isIssuer(base, issuer)).toBe(true)
  })

  test.each([
    ['another tenant than the one that was named', `${LOGIN}/${ID}`, `${LOGIN}/${OTHER_ID}/v2.0`],
    [
      'another external tenant',
      `https://contoso.ciamlogin.com/${ID}`,
      `https://${OTHER_ID}.ciamlogin.com/${OTHER_ID}/v2.0`,
    ],
    ['companies, where private accounts were named', `${LOGIN}/consumers`, `${LOGIN}/${ID}/v2.0`],
    ['another host', undefined, `https://login.microsoftonline.com.evil.example/${ID}/v2.0`],
    ['a tenant without an id', undefined, `${LOGIN}/common/v2.0`],
    ['the older endpoint', undefined, `https://sts.windows.net/${ID}/`],
    ['a longer path', undefined, `${LOGIN}/${ID}/${ID}/v2.0`],
  ])('not of %s', (_of, base, issuer) => {
    expect(isIssuer(base, issuer)).toBe(false)
  })
})

describe('a token endpoint that signs with the secret of the client', () => {
  const signed = (secret: string) => (claims: Claims) =>
    new SignJWT(claims).setProtectedHeader({ alg: 'HS256' }).sign(new TextEncoder().encode(secret))

  test('is believed, as it was asked with that secret', async () => {
    all.far.forge(signed(clientOf('google').secret))
    const account = all.newAccount('google')
    expect((await signedInUser(all.service, await all.signIn('google', account))).email).toBe(account.email)
  })

  test.each(['another secret', ''])('is not with %j', async (secret) => {
    all.far.forge(signed(secret || 'x'))
    expect(refusalOf(await all.signIn('google', all.newAccount('google')))).toMatchObject({
      error_description: 'Error getting user profile from external provider',
    })
  })

  test('but from an application it is refused: every holder of the secret can make one', async () => {
    const { id, secret } = clientOf('google')
    const iat = Math.floor(all.service.clock.now().getTime() / 1000)
    const claims = { iss: all.far.base('google'), aud: id, sub: 'forged', iat, exp: iat + 600 }
    const id_token = await signed(secret)(claims)
    expect(await all.service.post('/token?grant_type=id_token', { provider: 'google', id_token })).toMatchObject({
      status: 400,
      body: { error_description: 'Bad ID token' },
    })
  })
})
