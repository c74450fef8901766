import { createHash, type webcrypto } from 'node:crypto'
import { exportSPKI, generateKeyPair, importJWK, type JWK } from 'jose'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type OpenIdProvider, startOpenIdProvider } from '../../../test/openid-provider.ts'
import { startTestService, type TestService, toSignedIn } from '../../../test/service.ts'

const password = 'correct horse'

let google: OpenIdProvider
let corp: OpenIdProvider
let service: TestService
beforeAll(async () => {
  ;[google, corp] = await Promise.all([startOpenIdProvider(), startOpenIdProvider()])
  service = await startTestService({
    ...google.settings('GOOGLE'),
    AUTH_EXTERNAL_GOOGLE_CLIENT_ID: 'our-client, our-phone-app',
    ...corp.settings('OIDC_CORP'),
    AUTH_EXTERNAL_OIDC_CORP_SKIP_NONCE_CHECK: 'true',
    AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
  })
})
afterAll(async () => {
  await service.close()
  await Promise.all([google.close(), corp.close()])
})

let people = 0
const newPerson = (more: object = {}) => {
  const sub = `token-${people++}`
  return { sub, email: `${sub}@example.com`, email_verified: true, name: 'Somebody', ...more }
}

const grant = (body: object, headers = {}) => service.post('/token?grant_type=id_token', body, headers)
const LINKED = 'identity_already_exists'
const hashOf = (text: string) => createHash('sha256').update(text).digest('hex')

/** Refused in the form of OAuth, and in ours. */
const refused = (description: string, error = 'invalid request') => ({
  status: 400,
  body: { error, error_description: description, error_code: 'validation_failed', msg: description },
})

describe('an id_token', () => {
  test('gives a session; of the same account again the same user', async () => {
    const person = newPerson()
    const first = await grant({ provider: 'google', id_token: await google.idToken(person) })
    expect(first).toMatchObject({
      status: 200,
      body: { user: { email: person.email, identities: [{ provider: 'google', id: person.sub }] } },
    })
    expect(first.body.user.email_confirmed_at).toBeTruthy()
    const second = await grant({ provider: 'Google', id_token: await google.idToken(person) })
    expect(second.body.user.id).toBe(first.body.user.id)
    expect((await service.get('/user', toSignedIn(second.body).auth)).status).toBe(200)
  })

  test('may be for any of our clients there, and named by its issuer', async () => {
    const token = await google.idToken({ ...newPerson(), aud: 'our-phone-app' })
    expect((await grant({ provider: 'google', id_token: token })).status).toBe(200)
    expect((await grant({ provider: google.issuer, id_token: token })).status).toBe(200)
    expect((await grant({ issuer: google.issuer, client_id: 'our-phone-app', id_token: token })).status).toBe(200)
    const elsewhere = { issuer: google.issuer, client_id: 'of-somebody-else', id_token: token }
    expect((await grant(elsewhere)).body.msg).toBe(`Custom OIDC provider "${google.issuer}" not allowed`)
  })

  test('with a nonce needs the text it was made from', async () => {
    const nonce = 'a secret of the application'
    const person = newPerson()
    const token = await google.idToken({ ...person, nonce: hashOf(nonce) })
    const both = refused('Passed nonce and nonce in id_token should either both exist or not.')
    expect(await grant({ provider: 'google', id_token: token })).toMatchObject(both)
    expect(await grant({ provider: 'google', id_token: await google.idToken(person), nonce })).toMatchObject(both)
    expect(await grant({ provider: 'google', id_token: token, nonce: 'another' })).toMatchObject(
      refused('Nonces mismatch', 'invalid nonce'),
    )
    expect((await grant({ provider: 'google', id_token: token, nonce })).status).toBe(200)
    // Where the operator does not ask for it.
    const unasked = await corp.idToken({ ...newPerson(), nonce: 'whatever' })
    expect((await grant({ provider: 'corp', id_token: unasked })).status).toBe(200)
  })

  test('with an access token must be the one that came with it', async () => {
    const half = createHash('sha256').update('the right one').digest().subarray(0, 16)
    const token = await google.idToken({ ...newPerson(), at_hash: half.toString('base64url') })
    const answers = [
      await grant({ provider: 'google', id_token: token, access_token: 'another one' }),
      await grant({ provider: 'google', id_token: token, access_token: 'the right one' }),
    ]
    expect(answers).toMatchObject([refused('Bad ID token'), { status: 200 }])
  })

  test('links to the owner of its verified address, and to no user by an unverified one', async () => {
    const person = newPerson()
    const { userId } = await service.signedIn(person.email, password)
    const linked = await grant({ provider: 'google', id_token: await google.idToken(person) })
    expect(linked.body.user.id).toBe(userId)
    const other = newPerson({ email_verified: false })
    await service.signedIn(other.email, password)
    expect(await grant({ provider: 'google', id_token: await google.idToken(other) })).toMatchObject({
      status: 422,
      body: { error_code: 'provider_email_needs_verification' },
    })
  })

  test('is linked to the signed-in caller on request', async () => {
    const { auth, userId } = await service.signedIn()
    const body = { provider: 'google', id_token: await google.idToken(newPerson()), link_identity: true }
    expect((await grant(body)).body.error_code).toBe('no_authorization')
    const linked = await grant(body, auth)
    expect(linked.body.user).toMatchObject({ id: userId, app_metadata: { providers: ['email', 'google'] } })
    expect((await grant(body, auth)).body.error_code).toBe('identity_already_exists')
    await service.post('/logout', {}, auth)
    expect((await grant(body, auth)).body.error_code).toBe('session_not_found')
  })
})

test('of one account linked and signed in with at once, none waits for another forever', async () => {
  for (let round = 0; round < 3; round++) {
    const person = newPerson()
    const { auth } = await service.signedIn(person.email, password)
    const body = { provider: 'google', id_token: await google.idToken(person) }
    const link = () => grant({ ...body, link_identity: true }, auth)
    const answers = await Promise.all([grant(body), link(), grant(body), link()])
    const codes = answers.map(({ status, body: { error_code } }) => error_code ?? status)
    expect(codes.toSorted()).toEqual([200, 200, expect.toBeOneOf([200, LINKED]), LINKED])
  }
})

describe('refused is', () => {
  test.each<[string, object, string]>([
    ['a request without a token', { provider: 'google' }, 'id_token required'],
    ['one without a provider', { id_token: 'x' }, 'provider or client_id and issuer required'],
    ['what is no token', { provider: 'google', id_token: 'x' }, 'Bad ID token'],
    ['an empty token', { provider: 'google', id_token: 'e30.e30.' }, 'Bad ID token'],
  ])('%s', async (_, body, description) => {
    expect(await grant(body)).toMatchObject(refused(description))
  })

  test('a disabled provider, before the token is read, and one that has none', async () => {
    expect(await grant({ provider: 'facebook', id_token: 'x' })).toMatchObject({
      status: 400,
      body: { error_code: 'provider_disabled', msg: 'Provider "facebook" is not enabled' },
    })
    const off = await service.with({ AUTH_EXTERNAL_GOOGLE_ENABLED: 'false' })
    const { body } = await off.post('/token?grant_type=id_token', { provider: 'google', id_token: 'x' })
    expect(body.msg).toBe('Provider (issuer "https://accounts.google.com") is not enabled')
    await off.close()
    expect((await grant({ provider: 'nowhere', id_token: 'x' })).body.msg).toBe(
      'Custom OIDC provider "nowhere" not allowed',
    )
  })

  const hostile: Record<string, () => Promise<string>> = {
    'a token that nobody signed': async () => {
      const claims = { iss: google.issuer, aud: 'our-client', ...newPerson(), iat: now(), exp: now() + 300 }
      return `${encode({ alg: 'none' })}.${encode(claims)}.`
    },
    "one signed with the provider's public key as a secret": async () => {
      const published = await publishedKey()
      const secret = new TextEncoder().encode(await exportSPKI((await importJWK(published)) as webcrypto.CryptoKey))
      return google.idToken(newPerson(), { key: secret, header: { alg: 'HS256', kid: published.kid } })
    },
    'one of another key under the name of the right one': async () => {
      const { kid } = await publishedKey()
      const { privateKey } = await generateKeyPair('RS256')
      return google.idToken(newPerson(), { key: privateKey, header: { alg: 'RS256', kid } })
    },
    'one of an unknown key': async () => {
      const { privateKey } = await generateKeyPair('RS256')
      return google.idToken(newPerson(), { key: privateKey, header: { alg: 'RS256', kid: 'unknown' } })
    },
    'one of another provider of ours': () => corp.idToken(newPerson()),
    'one that names another issuer': () => google.idToken({ ...newPerson(), iss: corp.issuer }),
    'one that has expired': () => google.idToken({ ...newPerson(), iat: now() - 900, exp: now() - 60 }),
    'one that says nobody': () => google.idToken({ ...newPerson(), sub: '' }),
    'one that was changed': async () => {
      const [head, , signature] = (await google.idToken(newPerson())).split('.')
      const claims = { iss: google.issuer, aud: 'our-client', ...newPerson(), iat: now(), exp: now() + 300 }
      return `${head}.${encode(claims)}.${signature}`
    },
    'one for several, asked for by another': () =>
      google.idToken({ ...newPerson(), aud: ['our-client', 'of-somebody-else'], azp: 'of-somebody-else' }),
  }
  test.each(Object.keys(hostile))('%s', async (name) => {
    const id_token = (await hostile[name]?.()) as string
    const answer = await grant({ provider: 'google', id_token })
    expect(answer.status).toBe(400)
    expect(answer.body.error_description).toMatch(/^(Bad ID token|Missing sub claim in id_token)$/)
  })

  test.each<[string, unknown]>([
    ['too long', 'x'.repeat(256)],
    ['with NUL', 'a\0'],
    ['of half a character', '\ud800'],
    ['an object', { id: 1 }],
    ['a fraction', 1.5],
  ])('one whose account has an id that is none: %s', async (_, sub) => {
    const id_token = await google.idToken({ ...newPerson(), sub: sub as string })
    expect(await grant({ provider: 'google', id_token })).toMatchObject(refused('Bad ID token'))
  })

  test('one for another client, and says for whom it is', async () => {
    const id_token = await google.idToken({ ...newPerson(), aud: 'of-somebody-else' })
    expect(await grant({ provider: 'google', id_token })).toMatchObject(
      refused('Unacceptable audience in id_token: [of-somebody-else]'),
    )
  })

  test('any token of an unreachable provider, with 503: it cannot be checked', async () => {
    const gone = await startOpenIdProvider()
    const own = await service.with(gone.settings('GOOGLE'))
    const id_token = await gone.idToken(newPerson())
    await gone.close()
    expect(await own.post('/token?grant_type=id_token', { provider: 'google', id_token })).toMatchObject({
      status: 503,
      body: { error_code: 'provider_unavailable' },
    })
    expect((await own.get('/authorize?provider=google')).body.error_code).toBe('provider_unavailable')
    await own.close()
  })

  test.each<[string, () => Promise<string>, string]>([
    ['what is no JWT', async () => 'not a token', 'Bad ID token'],
    ['a JWT of no JSON', async () => 'a.b.c', 'Bad ID token'],
    ['one that has expired', () => google.idToken({ ...newPerson(), exp: now() - 60 }), 'Bad ID token'],
    [
      'one without an end',
      async () => `${encode({ alg: 'RS256' })}.${encode({ aud: 'our-client' })}.x`,
      'Bad ID token',
    ],
    ['one without a signature', async () => `${encode({ alg: 'none' })}.${encode(LIVE)}.`, 'Bad ID token'],
    [
      'one for another client',
      () => google.idToken({ ...newPerson(), aud: 'another' }),
      'Unacceptable audience in id_token: [another]',
    ],
  ])('%s, without asking a provider, which may be away', async (_what, make, description) => {
    const gone = await startOpenIdProvider()
    await gone.close()
    const own = await service.with(gone.settings('GOOGLE'))
    const id_token = await make()
    const given = [{ provider: 'google' }, { provider: gone.issuer }, { issuer: gone.issuer, client_id: 'our-client' }]
    // Found by its issuer, the provider is asked before the audience is checked.
    for (const by of description.startsWith('Bad') ? given : given.slice(0, 1)) {
      expect(await own.post('/token?grant_type=id_token', { ...by, id_token })).toMatchObject(refused(description))
    }
    await own.close()
  })
})

test.each(['corp', 'CORP', 'custom:corp', 'Custom:Corp'])(
  'a provider of one’s own is known as %s',
  async (provider) => {
    const person = newPerson()
    const answer = await grant({ provider, id_token: await corp.idToken(person) })
    expect([answer.status, answer.body.user?.app_metadata.provider]).toEqual([200, 'corp'])
    const begun = await service.get(`/authorize?provider=${provider}`)
    expect(String(begun.headers.location)).toContain(corp.issuer)
    const { access_token } = answer.body
    const url = `/user/identities/authorize?provider=${provider}&skip_http_redirect=true`
    expect((await service.get(url, { authorization: `Bearer ${access_token}` })).status).toBe(200)
  },
)

test.each(['custom:google', 'custom:nobody', 'custom:', 'custom:custom:corp'])(
  '%s is no provider',
  async (provider) => {
    const id_token = await google.idToken(newPerson())
    expect(await grant({ provider, id_token })).toMatchObject({
      status: 400,
      body: { error_code: 'validation_failed', msg: `Custom provider "${provider}" not found` },
    })
    expect(await service.get(`/authorize?provider=${provider}`)).toMatchObject({
      status: 400,
      body: { msg: `Unsupported provider: Provider ${provider} could not be found` },
    })
  },
)

async function publishedKey() {
  const { keys } = (await (await fetch(`${google.issuer}/jwks`)).json()) as { keys: (JWK & { kid: string })[] }
  return keys[0] as JWK & { kid: string }
}

/** The clock of the service, which stands still: by real time no token would expire there. */
const now = () => Math.floor(service.clock.now().getTime() / 1000)
const encode = (json: object) => Buffer.from(JSON.stringify(json)).toString('base64url')
const LIVE = { aud: 'our-client', exp: 4e9 }
