// Audit entries of each flow, in order (contract/auth-core.md 14).
import { createHash } from 'node:crypto'
import { expect } from 'vitest'
import { expectKnownMembers } from '../audit-members.ts'
import { test as base, type TestService } from '../service.ts'

const password = 'correct horse'
const PHONE = '4915100000001'
const VERIFIER = 'v'.repeat(43)
const PKCE = {
  code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
  code_challenge_method: 's256',
}

interface Entry {
  action: string
  log_type: string
  actor_id: string
  actor_username: string
  traits?: object
}

interface Recorder {
  /** Entries since the last look: action and traits, oldest first. */
  recorded(): Promise<[string, object?][]>
  /** Entries of this test. */
  entries(): Promise<Entry[]>
}

const test = base.extend<{ own: TestService & Recorder }>({
  own: async ({ service: shared }, use) => {
    const service = await shared.with({
      AUTH_SMS_TEST_OTP: `${PHONE}:111111,4915100000002:222222`,
      AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true',
    })
    await service.settled()
    const { length: before } = await entriesOf(service)
    const entries = async () => (await entriesOf(service)).slice(before)
    let seen = 0
    const recorded = async () => {
      await expect.poll(() => service.deps.queue.depth('message-requests')).toBe(0)
      const all = await entries()
      const fresh = all.slice(seen)
      seen = all.length
      return fresh.map(({ action, traits }): [string, object?] => (traits ? [action, traits] : [action]))
    }
    await use(Object.assign(service, { recorded, entries }))
    await service.close()
  },
})

async function entriesOf({ deps: { pool } }: TestService): Promise<Entry[]> {
  // The test's clock stands still: transaction and statement order the entries. Their place in the table does not.
  const order = 'created_at, xmin::text::bigint, cmin::text::bigint'
  const { rows } = await pool.query(`select payload from audit_log_entries order by ${order}`)
  const payloads = rows.map(({ payload }) => payload)
  expectKnownMembers(payloads)
  return payloads
}

const generate = async (service: TestService, body: object) =>
  (await service.post('/admin/generate_link', body, service.admin)).body

test('sign-up, its repetition, its confirmation, a sign-in and a refresh', async ({ own }) => {
  const email = 'a@example.com'
  const provider = { provider: 'email' }
  const step = async () => {
    own.clock.advance({ seconds: 1000 })
    return own.recorded()
  }
  await own.post('/signup', { email, password })
  expect(await step()).toEqual([['user_confirmation_requested', provider]])
  await own.post('/signup', { email, password })
  expect(await step()).toEqual([['user_confirmation_requested', provider]])
  await own.post('/resend', { type: 'signup', email })
  expect(await step()).toEqual([['user_confirmation_requested', provider]])
  const { hashed_token, id } = await generate(own, { type: 'signup', email, password })
  expect(await step()).toEqual([['link_generated', { user_id: id, user_email: email, user_phone: '', type: 'signup' }]])
  await own.post('/verify', { type: 'signup', token_hash: hashed_token })
  expect(await step()).toEqual([['user_signedup', provider]])
  await own.post('/signup', { email, password })
  expect(await step()).toEqual([['user_repeated_signup', provider]])
  const { body } = await own.post('/token?grant_type=password', { email, password })
  expect(await step()).toEqual([['login', provider]])
  await own.post('/token?grant_type=password', { email, password: 'wrong' })
  expect(await step()).toEqual([['login_failed', { provider: 'password', error_code: 'invalid_credentials' }]])
  await own.post('/token?grant_type=refresh_token', { refresh_token: body.refresh_token })
  expect(await step()).toEqual([['token_refreshed']])
  await own.post('/token?grant_type=refresh_token', { refresh_token: body.refresh_token })
  expect(await step()).toEqual([['token_repeated', { session_id: expect.any(String) }]])
  await own.post(
    '/token?grant_type=refresh_token',
    { refresh_token: body.refresh_token },
    { 'user-agent': 'Thief/1.0' },
  )
  expect(await step()).toEqual([['token_reuse_detected', { session_id: expect.any(String) }]])
  const [first] = await own.entries()
  expect(first).toMatchObject({ actor_id: body.user.id, actor_username: email, log_type: 'user' })
})

test('links to sign in with, links to recover, and what they are redeemed for', async ({ own }) => {
  const email = 'b@example.com'
  await own.post('/admin/users', { email, email_confirm: true }, own.admin)
  await own.recorded()
  for (const path of ['/otp', '/magiclink', '/recover']) {
    own.clock.advance({ seconds: 61 })
    await own.post(path, { email })
    expect([path, await own.recorded()]).toEqual([path, [['user_recovery_requested']]])
  }
  await own.post('/recover', { email: 'nobody@example.com' })
  await own.post('/otp', { email: 'nobody2@example.com', create_user: false })
  expect(await own.recorded()).toEqual([])
  const { hashed_token, id } = await generate(own, { type: 'recovery', email })
  expect(await own.recorded()).toEqual([
    ['link_generated', { user_id: id, user_email: email, user_phone: '', type: 'recovery' }],
  ])
  await own.post('/verify', { type: 'recovery', token_hash: hashed_token })
  expect(await own.recorded()).toEqual([['login', { provider: 'email' }]])
  // The first proof of an address is recorded as the sign-up.
  const unproven = 'b-unproven@example.com'
  await own.post('/admin/users', { email: unproven }, own.admin)
  const link = await generate(own, { type: 'magiclink', email: unproven })
  await own.recorded()
  await own.post('/verify', { type: 'magiclink', token_hash: link.hashed_token })
  expect(await own.recorded()).toEqual([['user_signedup', { provider: 'email' }]])
})

test('the exchange of a PKCE code', async ({ own }) => {
  const email = 'c@example.com'
  await own.post('/signup', { email, password, ...PKCE })
  const { text } = await own.mailbox.waitFor(email)
  const token = /token=(pkce_[\w-]+)/.exec(text)?.[1]
  const { headers } = await own.get(`/verify?type=signup&token=${token}`)
  await own.recorded()
  const code = new URL(String(headers.location)).searchParams.get('code')
  await own.post('/token?grant_type=pkce', { auth_code: code, code_verifier: VERIFIER })
  expect(await own.recorded()).toEqual([['login', { provider_type: 'email' }]])
})

test('a number: sign-up, code to sign in, change', async ({ own }) => {
  const provider = { provider: 'phone' }
  await own.post('/signup', { phone: PHONE, password })
  expect(await own.recorded()).toEqual([['user_confirmation_requested', provider]])
  own.clock.advance({ seconds: 61 })
  await own.post('/resend', { type: 'sms', phone: PHONE })
  expect(await own.recorded()).toEqual([['user_recovery_requested', provider]])
  const { body } = await own.post('/verify', { type: 'sms', phone: PHONE, token: '111111' })
  expect(await own.recorded()).toEqual([['user_signedup', provider]])
  own.clock.advance({ seconds: 61 })
  await own.post('/otp', { phone: PHONE })
  expect(await own.recorded()).toEqual([['user_recovery_requested', { channel: 'sms' }]])
  const auth = { authorization: `Bearer ${body.access_token}` }
  await own.put('/user', { phone: '4915100000002' }, auth)
  expect(await own.recorded()).toEqual([['user_modified']])
  await own.post('/verify', { type: 'phone_change', phone: '4915100000002', token: '222222' })
  expect(await own.recorded()).toEqual([['user_modified']])
})

test('the account: an empty change, a password, an address by two confirmations, a nonce, signing out', async ({
  own,
}) => {
  const { auth } = await own.signedIn('d@example.com')
  await own.recorded()
  await own.put('/user', {}, auth)
  expect(await own.recorded()).toEqual([['user_modified']])
  await own.put('/user', { password: 'a new horse' }, auth)
  expect(await own.recorded()).toEqual([['user_updated_password'], ['user_modified']])
  const order = { email: 'd@example.com', new_email: 'd2@example.com' }
  const current = await generate(own, { type: 'email_change_current', ...order })
  const next = await generate(own, { type: 'email_change_new', ...order })
  const traits = { user_id: current.id, user_email: 'd@example.com', user_phone: '' }
  expect(await own.recorded()).toEqual([
    ['link_generated', { ...traits, type: 'email_change_current' }],
    ['link_generated', { ...traits, type: 'email_change_new' }],
  ])
  await own.post('/verify', { type: 'email_change', token_hash: current.hashed_token })
  expect(await own.recorded()).toEqual([['email_change_agreed', { side: 'current' }]])
  await own.post('/verify', { type: 'email_change', token_hash: next.hashed_token })
  expect(await own.recorded()).toEqual([['user_modified']])
  await own.get('/reauthenticate', auth)
  expect(await own.recorded()).toEqual([['user_reauthenticate_requested']])
  await own.post('/logout', {}, auth)
  expect(await own.recorded()).toEqual([['logout']])
})

test('an invitation, by mail or as a link, has the admin as its actor and the invitee in its traits', async ({
  own,
}) => {
  const { body } = await own.post('/invite', { email: 'e@example.com' }, own.admin)
  const link = await generate(own, { type: 'invite', email: 'e2@example.com' })
  const invitee = { user_id: link.id, user_email: 'e2@example.com', user_phone: '' }
  expect(await own.recorded()).toEqual([
    ['user_invited', { user_id: body.id, user_email: 'e@example.com', user_phone: '' }],
    ['user_invited', invitee],
    ['link_generated', { ...invitee, type: 'invite' }],
  ])
  expect((await own.entries())[0]).toMatchObject({ actor_username: 'service_role', log_type: 'team' })
})

test('an anonymous sign-up leaves no entry', async ({ own }) => {
  expect((await own.post('/signup', {})).status).toBe(200)
  expect(await own.recorded()).toEqual([])
})

test('autoconfirmed sign-ups are a sign-up and a sign-in; the second one a repetition', async ({ service: shared }) => {
  const service = await shared.with({ AUTH_MAILER_AUTOCONFIRM: 'true', AUTH_SMS_AUTOCONFIRM: 'true' })
  for (const address of [{ email: 'f@example.com' }, { phone: '4915100000003' }]) {
    const before = (await entriesOf(service)).length
    await service.post('/signup', { ...address, password })
    await service.post('/signup', { ...address, password })
    const [signedUp, ...rest] = (await entriesOf(service)).slice(before)
    expect(signedUp).toMatchObject({ action: 'user_signedup', traits: { provider: Object.keys(address)[0] } })
    expect(rest.map(({ action }) => action)).toEqual(['login', 'user_repeated_signup'])
  }
  await service.close()
})
