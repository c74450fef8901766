// Every method of the public client that belongs to sign-up, sign-in, accounts and administration, in both of its flows.
import { AuthAdminApi, AuthClient } from '@supabase/auth-js'
import { describe, expect } from 'vitest'
import { test as base, codeIn, linkPath, startTestService, type TestService, tokenIn } from './service.ts'

const password = 'correct horse'

const test = base.extend<object & { url: string }>({
  url: [
    async ({ service }, use) => {
      await use(await service.app.listen({ port: 0, host: '127.0.0.1' }))
    },
    { scope: 'file' },
  ],
})

function clientOf(url: string, flowType: 'implicit' | 'pkce') {
  const store = new Map<string, string>()
  return new AuthClient({
    url,
    flowType,
    autoRefreshToken: false,
    persistSession: true,
    storage: {
      getItem: (key) => store.get(key) ?? null,
      setItem: (key, value) => void store.set(key, value),
      removeItem: (key) => void store.delete(key),
    },
  })
}

/** What the browser is sent back with when the newest mail's link is followed. */
async function follow(service: TestService, email: string, after?: { id: number }) {
  const mail = await service.mailbox.waitFor(email, after ? { after } : {})
  const answer = await service.get(linkPath(mail.text))
  return new URL(String(answer.headers.location))
}

const newest = (service: TestService, email: string) => service.mailbox.messages({ to: email })[0]

describe.each(['implicit', 'pkce'] as const)('in the %s flow', (flow) => {
  /** The session of a followed link, as the client takes it from the address bar. */
  async function takeSession(client: ReturnType<typeof clientOf>, target: URL) {
    if (flow === 'pkce') return client.exchangeCodeForSession(target.searchParams.get('code') as string)
    const fragment = new URLSearchParams(target.hash.slice(1))
    return client.setSession({
      access_token: fragment.get('access_token') as string,
      refresh_token: fragment.get('refresh_token') as string,
    })
  }

  test('signUp, and its link', async ({ service, url }) => {
    const client = clientOf(url, flow)
    const email = `signup-${flow}@example.com`
    expect((await client.signUp({ email, password })).error).toBeNull()
    const taken = await takeSession(client, await follow(service, email))
    expect(taken).toMatchObject({ error: null, data: { user: { email } } })
  })

  test('signInWithOtp of a new and of a known address', async ({ service, url }) => {
    const client = clientOf(url, flow)
    const email = `otp-${flow}@example.com`
    const options = { data: { plan: 'pro' }, emailRedirectTo: 'https://site.example/app' }
    expect((await client.signInWithOtp({ email, options })).error).toBeNull()
    const target = await follow(service, email)
    expect(target.pathname).toBe('/app')
    expect(await takeSession(client, target)).toMatchObject({
      error: null,
      data: { user: { user_metadata: { plan: 'pro' } } },
    })
    service.clock.advance({ seconds: 61 })
    const before = newest(service, email)
    expect((await client.signInWithOtp({ email })).error).toBeNull()
    expect((await takeSession(client, await follow(service, email, before))).error).toBeNull()
  })

  test('resetPasswordForEmail, then updateUser', async ({ service, url }) => {
    const client = clientOf(url, flow)
    const email = `reset-${flow}@example.com`
    await service.signedIn(email)
    const before = newest(service, email)
    expect((await client.resetPasswordForEmail(email)).error).toBeNull()
    expect((await takeSession(client, await follow(service, email, before))).error).toBeNull()
    expect((await client.updateUser({ password: 'remembered now' })).error).toBeNull()
    expect((await client.signInWithPassword({ email, password: 'remembered now' })).error).toBeNull()
  })

  test('updateUser with another address, confirmed by both', async ({ service, url }) => {
    const client = clientOf(url, flow)
    const [from, to] = [`move-${flow}@example.com`, `moved-${flow}@example.com`]
    await service.signedIn(from)
    await client.signInWithPassword({ email: from, password })
    const before = newest(service, from)
    expect(await client.updateUser({ email: to })).toMatchObject({ error: null, data: { user: { new_email: to } } })
    const half = await follow(service, from, before)
    expect(half.href).toContain('message=')
    expect(await takeSession(client, await follow(service, to))).toMatchObject({
      error: null,
      data: { user: { email: to } },
    })
  })
})

test('verifyOtp with the code of each mail, and resend', async ({ service, url }) => {
  const client = clientOf(url, 'implicit')
  const email = 'codes@example.com'
  await client.signUp({ email, password })
  const first = await service.mailbox.waitFor(email)
  service.clock.advance({ seconds: 901 })
  expect((await client.resend({ type: 'signup', email })).error).toBeNull()
  const second = await service.mailbox.waitFor(email, { after: first })
  expect(await client.verifyOtp({ type: 'email', email, token: codeIn(second.text) })).toMatchObject({
    error: null,
    data: { user: { email } },
  })
  await client.signInWithOtp({ email })
  const third = await service.mailbox.waitFor(email, { after: second })
  expect((await client.verifyOtp({ type: 'magiclink', token_hash: tokenIn(third.text) })).error).toBeNull()
  const wrong = await client.verifyOtp({ type: 'email', email, token: '000000' })
  expect(wrong.error).toMatchObject({ status: 403, code: 'otp_expired' })
})

test('reauthenticate, and the nonce with the new password', async () => {
  const service = await startTestService({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_REAUTHENTICATION: 'true' })
  const client = clientOf(await service.app.listen({ port: 0, host: '127.0.0.1' }), 'implicit')
  const email = 'again@example.com'
  await service.signedIn(email)
  await client.signInWithPassword({ email, password })
  expect((await client.updateUser({ password: 'a new horse' })).error).toMatchObject({
    code: 'reauthentication_needed',
  })
  const before = newest(service, email)
  expect((await client.reauthenticate()).error).toBeNull()
  const mail = await service.mailbox.waitFor(email, before ? { after: before } : {})
  expect((await client.updateUser({ password: 'a new horse', nonce: codeIn(mail.text) })).error).toBeNull()
  await service.close()
})

test('signInAnonymously, then a permanent account', async () => {
  const service = await startTestService({ AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' })
  const client = clientOf(await service.app.listen({ port: 0, host: '127.0.0.1' }), 'implicit')
  expect(await client.signInAnonymously()).toMatchObject({ error: null, data: { user: { is_anonymous: true } } })
  expect((await client.updateUser({ email: 'named@example.com' })).error).toBeNull()
  await follow(service, 'named@example.com')
  expect(await client.getUser()).toMatchObject({
    error: null,
    data: { user: { is_anonymous: false, email: 'named@example.com' } },
  })
  await service.close()
})

test('signOut in each scope', async ({ service, url }) => {
  const email = 'scopes@example.com'
  await service.signedIn(email)
  const [one, two] = [clientOf(url, 'implicit'), clientOf(url, 'implicit')]
  const signInBoth = async () => {
    for (const client of [one, two]) await client.signInWithPassword({ email, password })
  }
  await signInBoth()
  expect((await one.signOut({ scope: 'others' })).error).toBeNull()
  expect((await one.refreshSession()).error).toBeNull()
  expect((await two.refreshSession()).error).not.toBeNull()
  await signInBoth()
  expect((await one.signOut({ scope: 'local' })).error).toBeNull()
  expect((await two.refreshSession()).error).toBeNull()
  await signInBoth()
  expect((await one.signOut({ scope: 'global' })).error).toBeNull()
  expect((await two.refreshSession()).error).not.toBeNull()
})

test('the admin methods', async ({ service, url }) => {
  const admin = new AuthAdminApi({ url, headers: { Authorization: service.admin.authorization } })
  const email = 'managed@example.com'
  const created = await admin.createUser({ email, password, email_confirm: true, app_metadata: { team: 'red' } })
  expect(created).toMatchObject({ error: null, data: { user: { email, app_metadata: { team: 'red' } } } })
  const id = created.data.user?.id as string
  const client = clientOf(url, 'implicit')
  expect((await client.signInWithPassword({ email, password })).error).toBeNull()

  expect(await admin.getUserById(id)).toMatchObject({ error: null, data: { user: { id, email } } })
  const listed = await admin.listUsers({ page: 1, perPage: 1 })
  expect(listed).toMatchObject({ error: null, data: { aud: 'authenticated' } })
  expect(listed.data.users).toHaveLength(1)

  const updated = await admin.updateUserById(id, {
    email: 'renamed@example.com',
    email_confirm: true,
    user_metadata: { a: 1 },
  })
  expect(updated).toMatchObject({
    error: null,
    data: { user: { email: 'renamed@example.com', user_metadata: { a: 1 } } },
  })
  expect((await admin.updateUserById(id, { ban_duration: '1h' })).data.user).toHaveProperty('banned_until')
  expect((await client.signInWithPassword({ email: 'renamed@example.com', password })).error?.code).toBe('user_banned')
  expect((await admin.updateUserById(id, { ban_duration: 'none' })).error).toBeNull()

  await client.signInWithPassword({ email: 'renamed@example.com', password })
  const { data } = await client.getSession()
  expect((await admin.signOut(data.session?.access_token as string, 'global')).error).toBeNull()
  expect((await client.refreshSession()).error).not.toBeNull()

  expect((await admin.inviteUserByEmail('guest@example.com', { data: { team: 1 } })).error).toBeNull()
  await service.mailbox.waitFor('guest@example.com')
  const link = await admin.generateLink({ type: 'magiclink', email: 'renamed@example.com' })
  expect(link).toMatchObject({ error: null, data: { properties: { verification_type: 'magiclink' }, user: { id } } })
  const hash = link.data.properties?.hashed_token as string
  expect((await client.verifyOtp({ type: 'magiclink', token_hash: hash })).error).toBeNull()

  expect((await admin.deleteUser(id)).error).toBeNull()
  expect((await admin.getUserById(id)).error).toMatchObject({ status: 404, code: 'user_not_found' })
})
