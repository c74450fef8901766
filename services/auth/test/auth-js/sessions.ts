// An application's use of a session: it reads, checks, refreshes, hands over and ends it.
import { createRemoteJWKSet, exportJWK, generateKeyPair, jwtVerify } from 'jose'
import { describe, expect } from 'vitest'
import { SIGNING_ALGORITHMS, type SigningAlgorithm } from '../../src/core/keys/jwt-keys.ts'
import { authHere } from '../command-line.ts'
import { clientOf, follow, newest, password, signIn, smsCode, test } from './client.ts'

test('getSession, getUser, setSession and refreshSession speak of one user and one session', async ({ open }) => {
  const { client } = clientOf(open)
  const email = 'session@example.com'
  const { session, user } = await signIn(open, client, email)
  expect(await client.getSession()).toMatchObject({ error: null, data: { session } })
  expect(await client.getUser()).toMatchObject({ error: null, data: { user: { id: user.id, email } } })

  const { client: other } = clientOf(open)
  expect((await other.getUser()).error).toMatchObject({ name: 'AuthSessionMissingError' })
  expect(await other.getUser(session.access_token)).toMatchObject({ error: null, data: { user: { id: user.id } } })
  expect((await other.getUser(`${session.access_token.slice(0, -8)}AAAAAAAA`)).error).toMatchObject({
    status: 403,
    code: 'bad_jwt',
  })
  expect(await other.setSession(session)).toMatchObject({ error: null, data: { user: { id: user.id } } })
  const refreshed = await other.refreshSession()
  expect(refreshed).toMatchObject({ error: null, data: { user: { id: user.id } } })
  expect(refreshed.data.session?.refresh_token).not.toBe(session.refresh_token)
  expect(await clientOf(open).client.refreshSession(session)).toMatchObject({
    error: null,
    data: { session: { refresh_token: refreshed.data.session?.refresh_token } },
  })
  expect((await other.refreshSession({ refresh_token: 'nonsense' })).error).toMatchObject({
    status: 400,
    code: 'refresh_token_not_found',
  })
})

test('setSession with a token that has expired gets a new one', async ({ open }) => {
  const { client } = clientOf(open)
  const { session } = await signIn(open, client, 'expired@example.com')
  const [header, payload, signature] = session.access_token.split('.') as [string, string, string]
  const claims = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), exp: 1 }
  const expired = [header, Buffer.from(JSON.stringify(claims)).toString('base64url'), signature].join('.')
  const set = await client.setSession({ access_token: expired, refresh_token: session.refresh_token })
  expect(set).toMatchObject({ error: null, data: { user: { email: 'expired@example.com' } } })
  expect((await client.getUser()).error).toBeNull()
})

describe('getClaims', () => {
  test('of a token signed with a key of our set verifies by itself, with the set fetched once', async ({ open }) => {
    // The library keeps sets for all clients of one key.
    const { client, asked } = clientOf(open, 'implicit', { storageKey: 'claims' })
    const { user, session } = await signIn(open, client, 'claims@example.com')
    asked.length = 0
    for (let i = 0; i < 2; i++) {
      expect(await client.getClaims()).toMatchObject({
        error: null,
        data: { claims: { sub: user.id, role: 'authenticated', aud: 'authenticated' }, header: { alg: 'ES256' } },
      })
    }
    expect(asked).toEqual(['/.well-known/jwks.json'])
    const [header, , signature] = session.access_token.split('.')
    const claims = { sub: user.id, role: 'service_role', exp: session.expires_at }
    const forged = `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`
    expect((await client.getClaims(forged)).error).toMatchObject({ name: 'AuthInvalidJwtError' })
  })

  // RFC 9068 2.1. The default stays JWT: clients in other languages take nothing else.
  test('of a token of the type at+jwt verifies too, and so does a server that demands it', async ({ open }) => {
    const service = await open.service.with({ AUTH_JWT_TYPE: 'at+jwt' })
    const typed = { ...open, service, url: await service.app.listen({ port: 0, host: '127.0.0.1' }) }
    const { client } = clientOf(typed)
    const { session, user } = await signIn(typed, client, 'typed@example.com')
    expect(await client.getClaims()).toMatchObject({
      error: null,
      data: { claims: { sub: user.id }, header: { typ: 'at+jwt', alg: 'ES256' } },
    })
    const keys = createRemoteJWKSet(new URL(`${typed.url}/.well-known/jwks.json`))
    const rules = { typ: 'at+jwt', algorithms: ['ES256'], currentDate: service.clock.now() }
    expect((await jwtVerify(session.access_token, keys, rules)).payload.sub).toBe(user.id)
    await expect(jwtVerify(session.refresh_token, keys, rules)).rejects.toThrow('Invalid Compact JWS')
    const { session: untyped } = await signIn(open, clientOf(open).client, 'untyped@example.com')
    await expect(jwtVerify(untyped.access_token, keys, rules)).rejects.toThrow('"typ"')
    expect((await service.get('/user', { authorization: `Bearer ${untyped.access_token}` })).status).toBe(200)
    await service.close()
  })

  test.for(SIGNING_ALGORITHMS)('of a token signed %s either works, or the key is warned of', async (alg, { open }) => {
    const settings = { AUTH_JWT_KEYS: JSON.stringify({ keys: [await keyFor(alg)] }) }
    const service = await open.service.with(settings)
    const other = { ...open, service, url: await service.app.listen({ port: 0, host: '127.0.0.1' }) }
    const { client } = clientOf(other)
    await signIn(other, client, `${alg.toLowerCase()}@example.com`)
    const isRead = await client.getClaims().then(
      ({ error }) => error === null,
      () => false,
    )
    const { code, stdout } = await authHere(['config', 'check'], settings)
    const isWarnedOf = stdout.includes(`AUTH_JWT_KEYS signs ${alg}, for which getClaims() of the client throws`)
    expect({ code, isWarnedOf }).toEqual({ code: 0, isWarnedOf: !isRead })
    await service.close()
  })

  test('of a token signed with the secret asks the service', async ({ strict }) => {
    const { client, asked } = clientOf(strict)
    const { user } = await signIn(strict, client, 'claims@example.com')
    asked.length = 0
    expect(await client.getClaims()).toMatchObject({
      error: null,
      data: { claims: { sub: user.id }, header: { alg: 'HS256' } },
    })
    expect(asked).toEqual(['/user'])
  })
})

test('signInAnonymously, then a permanent account by address or by number', async ({ open }) => {
  for (const address of [{ email: 'named@example.com' }, { phone: '4915100000201' }]) {
    const { client } = clientOf(open)
    const { data } = await client.signInAnonymously({ options: { data: { cart: 1 } } })
    expect(data.user).toMatchObject({ is_anonymous: true, user_metadata: { cart: 1 } })
    expect((await client.updateUser(address)).error).toBeNull()
    if (address.email) await follow(open, address.email)
    else {
      const { phone = '' } = address
      const token = await smsCode(open, phone)
      expect((await client.verifyOtp({ type: 'phone_change', phone, token })).error).toBeNull()
    }
    expect(await client.getUser()).toMatchObject({
      error: null,
      data: { user: { id: data.user?.id, is_anonymous: false, ...address } },
    })
  }
})

test('signOut in each scope', async ({ open }) => {
  const email = 'scopes@example.com'
  const [{ client: one }, { client: two }] = [clientOf(open), clientOf(open)]
  const signInBoth = async () => {
    for (const client of [one, two]) await signIn(open, client, email)
  }
  await signInBoth()
  expect((await one.signOut({ scope: 'others' })).error).toBeNull()
  expect((await one.refreshSession()).error).toBeNull()
  expect((await two.refreshSession()).error).not.toBeNull()
  await signInBoth()
  expect((await one.signOut({ scope: 'local' })).error).toBeNull()
  expect((await two.refreshSession()).error).toBeNull()
  await signInBoth()
  expect((await one.signOut()).error).toBeNull()
  expect((await two.refreshSession()).error).not.toBeNull()
})

test('onAuthStateChange reports every change of the session', async ({ open }) => {
  const { client } = clientOf(open)
  const email = 'events@example.com'
  const events: string[] = []
  const { data } = client.onAuthStateChange((event) => void events.push(event))
  await expect.poll(() => events).toEqual(['INITIAL_SESSION'])
  await signIn(open, client, email)
  await client.refreshSession()
  await client.updateUser({ data: { name: 'Ada' } })
  await client.signOut()
  await client.resetPasswordForEmail(email)
  const mail = await open.service.mailbox.waitFor(email)
  const hash = /token=([\w-]+)/.exec(mail.text)?.[1] as string
  expect((await client.verifyOtp({ type: 'recovery', token_hash: hash })).error).toBeNull()
  const told = ['INITIAL_SESSION', 'SIGNED_IN', 'TOKEN_REFRESHED', 'USER_UPDATED', 'SIGNED_OUT', 'PASSWORD_RECOVERY']
  expect(events).toEqual(told)
  data.subscription.unsubscribe()
  await client.signOut()
  expect(events).toEqual(told)
})

test('a recovery by link in the PKCE flow is reported as one', async ({ open }) => {
  const { client } = clientOf(open, 'pkce')
  const email = 'events-pkce@example.com'
  await signIn(open, client, email)
  await client.signOut()
  const events: string[] = []
  client.onAuthStateChange((event) => void events.push(event))
  await expect.poll(() => events).toEqual(['INITIAL_SESSION'])
  await client.resetPasswordForEmail(email)
  await client.exchangeCodeForSession((await follow(open, email)).searchParams.get('code') as string)
  expect(events).toEqual(['INITIAL_SESSION', 'PASSWORD_RECOVERY'])
})

test('startAutoRefresh renews a session that is about to end, until stopAutoRefresh or dispose', async ({ open }) => {
  const { client, store, asked } = clientOf(open)
  await signIn(open, client, 'auto@example.com')
  const [[key, stored]] = [...store] as [[string, string]]
  const session = JSON.parse(stored)
  store.set(key, JSON.stringify({ ...session, expires_at: Math.floor(Date.now() / 1000) + 60 }))
  const renewed = new Promise<void>((resolve) => {
    client.onAuthStateChange((event) => event === 'TOKEN_REFRESHED' && resolve())
  })
  await client.startAutoRefresh()
  await renewed
  await client.stopAutoRefresh()
  expect((await client.getSession()).data.session?.refresh_token).not.toBe(session.refresh_token)
  expect(asked.filter((path) => path === '/token')).toHaveLength(2)
  await client.dispose()
})

test('initialize finds the session that another tab stored; throwOnError throws what is refused', async ({ open }) => {
  const { client, store } = clientOf(open)
  const { user } = await signIn(open, client, 'tab@example.com')
  const storage = {
    getItem: (key: string) => store.get(key) ?? null,
    setItem: (key: string, value: string) => void store.set(key, value),
    removeItem: (key: string) => void store.delete(key),
  }
  const { client: tab } = clientOf(open, 'implicit', { storage, throwOnError: true, skipAutoInitialize: true })
  expect((await tab.initialize()).error).toBeNull()
  expect((await tab.getUser()).data.user?.id).toBe(user.id)
  expect(tab.isThrowOnErrorEnabled()).toBe(true)
  await expect(tab.signInWithPassword({ email: 'tab@example.com', password: 'wrong horse' })).rejects.toMatchObject({
    code: 'invalid_credentials',
  })
  expect(newest(open, 'tab@example.com')).toBeUndefined()
  expect((await tab.signInWithPassword({ email: 'tab@example.com', password })).error).toBeNull()
})

async function keyFor(alg: SigningAlgorithm) {
  const material =
    alg === 'HS256'
      ? { kty: 'oct', k: Buffer.alloc(32, 'k').toString('base64url') }
      : await exportJWK((await generateKeyPair(alg, { extractable: true })).privateKey)
  return { ...material, kid: alg, alg, key_ops: ['sign', 'verify'] }
}
