// Messages that a hook sends instead of a mail server and a gateway (contract/auth-hooks.md 10). A receiver
// that fails: send-hooks.slow.test.ts; requests that wait for the hook: sync-hooks.test.ts.
import { test as base, describe, expect } from 'vitest'
import { enrollTotp, verifyTotp } from './second-factors.ts'
import { fragmentOf, locationOf, type SignedIn, type TestService } from './service.ts'
import {
  type HookReceiver,
  linkOf,
  type Question,
  startReceiver,
  startSendingService,
} from './upstreams/hook-receiver.ts'

const SECURE = { AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'true' }
const NOTICES = ['PASSWORD_CHANGED', 'IDENTITY_LINKED', 'IDENTITY_UNLINKED', 'MFA_FACTOR_ENROLLED', 'PHONE_CHANGED']

interface Sending {
  service: TestService
  receiver: HookReceiver
}

const test = base.extend<object & { sending: Sending }>({
  sending: [
    // biome-ignore lint/correctness/noEmptyPattern: vitest reads the names of the fixtures a fixture uses from it
    async ({}, use) => {
      const receiver = await startReceiver()
      const service = await startSendingService(receiver, {
        ...SECURE,
        ...Object.fromEntries(NOTICES.map((kind) => [`AUTH_MAILER_NOTIFICATIONS_${kind}_ENABLED`, 'true'])),
        AUTH_SMS_TEST_OTP: '4915100000001:111111',
        AUTH_MAILER_TEST_OTP: 'fixed@example.com:222222',
        AUTH_RATE_LIMIT_HEADER: 'x-client',
        AUTH_MFA_PHONE_ENROLL_ENABLED: 'true',
        AUTH_MFA_PHONE_VERIFY_ENABLED: 'true',
        AUTH_SECURITY_MANUAL_LINKING_ENABLED: 'true',
        AUTH_SELF_DELETION_ENABLED: 'true',
      })
      await use({ service, receiver })
      await service.close()
      await receiver.close()
    },
    { scope: 'file' },
  ],
})

const password = 'correct horse'
const NEW = /^(?:recipient|subject|text|html|token|token_hash)_new$/

/** The mail that confirms, as senders of the reference build it: by token_hash of one mail. */
async function follow({ service }: Sending, { email_data: data }: Question, hash = data.token_hash) {
  return service.get(linkOf(data, hash))
}

describe('each mail', () => {
  test('comes with its link, its code and the user it goes to, and confirms', async ({ sending }) => {
    const { service, receiver } = sending
    const email = 'each@example.com'
    const from = { 'x-client': '203.0.113.7' }
    await service.post('/signup', { email, password, data: { name: 'Ada' } }, from)
    const signUp = await receiver.next({ to: email })
    expect(signUp).toMatchObject({
      metadata: { uuid: signUp.id, name: 'send-email', ip_address: '203.0.113.7' },
      user: { email, user_metadata: { name: 'Ada' } },
      email_data: {
        email_action_type: 'signup',
        token: expect.stringMatching(/^\d{6}$/),
        site_url: 'https://auth.example',
        redirect_to: 'https://site.example',
        recipient: email,
        locale: 'en',
        subject: 'Confirm your email address',
        text: expect.stringContaining(signUp.email_data.token as string),
        html: expect.stringContaining('<!doctype html>'),
      },
    })
    expect(fragmentOf(await follow(sending, signUp))).toMatchObject({ type: 'signup' })
    await service.settled()
    const { body } = await service.get(`/admin/messages?user_id=${signUp.user.id}`, service.admin)
    expect(body.messages).toMatchObject([{ id: signUp.id, state: 'sent', provider: 'hook', attempts: 1 }])

    await service.post('/recover', { email })
    expect(fragmentOf(await follow(sending, await receiver.next({ type: 'recovery', to: email })))).toMatchObject({
      type: 'recovery',
    })
    service.clock.advance({ seconds: 61 })
    const pkce = { code_challenge: 'x'.repeat(43), code_challenge_method: 'plain' }
    await service.post('/otp', { email, ...pkce })
    const magic = await receiver.next({ type: 'magiclink', to: email })
    expect(magic.email_data.token_hash).toMatch(/^pkce_/)
    expect(new URL(locationOf(await follow(sending, magic))).searchParams.get('code')).toBeTruthy()
    await service.post('/invite', { email: 'invited@example.com' }, service.admin)
    expect(fragmentOf(await follow(sending, await receiver.next({ to: 'invited@example.com' })))).toMatchObject({
      type: 'invite',
    })
  })

  test('of a reauthentication or a notice has no link', async ({ sending }) => {
    const { service, receiver } = sending
    const email = 'notices@example.com'
    const user = await service.signedIn(email)
    await service.get('/reauthenticate', user.auth)
    const { email_data: nonce } = await receiver.next({ to: email })
    expect(nonce).toMatchObject({ email_action_type: 'reauthentication', token_hash: '', redirect_to: '' })
    const changed = await service.put('/user', { password: 'a new horse', nonce: nonce.token }, user.auth)
    expect(changed.status).toBe(200)
    const notice = await receiver.next({ to: email })
    expect(notice.email_data).toMatchObject({ email_action_type: 'password_changed_notification', token: '' })
    const totp = await enrollTotp(service, user)
    await verifyTotp(service, user, totp)
    const enrolled = await receiver.next({ to: email })
    expect(enrolled.email_data).toMatchObject({
      email_action_type: 'mfa_factor_enrolled_notification',
      factor_type: 'totp',
      recipient: email,
    })
  })

  test('of a deleted account names the user who had it', async ({ sending }) => {
    const { service, receiver } = sending
    const email = 'deleted@example.com'
    const { auth, userId } = await service.signedIn(email)
    await service.put('/user', { data: { name: 'Ada' } }, auth)
    expect((await service.delete('/user', auth)).status).toBe(204)
    const notice = await receiver.next({ type: 'account_deleted_notification', to: email })
    expect(notice.user).toMatchObject({ id: userId, email, user_metadata: { name: 'Ada' } })
    await service.settled()
    const { rows } = await service.deps.pool.query('select state, user_id from messages where id = $1', [notice.id])
    expect(rows).toEqual([{ state: 'sent', user_id: null }])
  })

  test('shows no data of a stranger who registered the address before', async ({ sending }) => {
    const { service, receiver } = sending
    const email = 'claimed@example.com'
    await service.post('/signup', { email, password, data: { name: 'visit evil.example' } })
    await receiver.next({ to: email })
    for (const [path, body] of [
      ['/recover', {}],
      ['/signup', { password, data: { name: 'Owner' } }],
    ] as const) {
      service.clock.advance({ seconds: 901 })
      await service.post(path, { email, ...body })
      const { user } = await receiver.next({ to: email })
      expect(JSON.stringify(user.user_metadata)).not.toContain('evil')
    }
  })
})

async function changing({ service }: Sending, from: string, to: string): Promise<SignedIn> {
  const user = await service.signedIn(from)
  expect((await service.put('/user', { email: to }, user.auth)).status).toBe(200)
  return user
}

describe('a change of address', () => {
  const emailOf = async ({ service }: Sending, { userId }: SignedIn) =>
    (await service.get(`/admin/users/${userId}`, service.admin)).body.email

  test('is one question, whose links are swapped as in the reference and confirm', async ({ sending }) => {
    const user = await changing(sending, 'both@example.com', 'both-new@example.com')
    const { id, user: shown, email_data: data } = await sending.receiver.next({ to: 'both-new@example.com' })
    expect(shown).toMatchObject({ email: 'both@example.com', new_email: 'both-new@example.com' })
    expect(data).toMatchObject({ recipient: 'both@example.com', recipient_new: 'both-new@example.com' })
    expect(data.text).toContain(data.token_hash_new)
    expect(data.text_new).toContain(data.token_hash)
    expect(fragmentOf(await sending.service.get(linkOf(data, data.token_hash_new)))).toMatchObject({
      message: expect.stringContaining('Confirmation link accepted'),
    })
    expect(await emailOf(sending, user)).toBe('both@example.com')
    await sending.service.get(linkOf(data, data.token_hash))
    expect(await emailOf(sending, user)).toBe('both-new@example.com')
    const notice = await sending.receiver.next({ type: 'email_changed_notification', to: 'both@example.com' })
    expect(notice).toMatchObject({
      user: { email: 'both-new@example.com' },
      email_data: { recipient: 'both@example.com', old_email: 'both@example.com' },
    })
    expect(sending.receiver.questions().filter((question) => question.id === id)).toHaveLength(1)
  })

  test('is confirmed by the codes of both addresses', async ({ sending }) => {
    const { service, receiver } = sending
    const user = await changing(sending, 'codes@example.com', 'codes-new@example.com')
    const { email_data: data } = await receiver.next({ type: 'email_change', to: 'codes-new@example.com' })
    const confirm = (email: string, token = '') => service.post('/verify', { type: 'email_change', email, token })
    expect(await confirm('codes@example.com', data.token_new)).toMatchObject({ status: 403 })
    expect(await confirm('codes@example.com', data.token)).toMatchObject({ status: 200 })
    expect(await confirm('codes-new@example.com', data.token_new)).toMatchObject({ status: 200 })
    expect(await emailOf(sending, user)).toBe('codes-new@example.com')
  })

  test('that the new address alone confirms has its code and link, and nothing for the current one', async ({
    sending,
  }) => {
    const { service, receiver } = sending
    const lone = await service.with({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
    const user = await changing({ ...sending, service: lone }, 'alone@example.com', 'alone-new@example.com')
    const { email_data: data } = await receiver.next({ type: 'email_change', to: 'alone-new@example.com' })
    const empty = Object.fromEntries(
      Object.keys(data)
        .filter((key) => NEW.test(key))
        .map((key) => [key, '']),
    )
    expect(data).toMatchObject({ ...empty, recipient: 'alone-new@example.com' })
    expect(Object.keys(empty)).toHaveLength(6)
    await lone.get(linkOf(data, data.token_hash))
    expect(await emailOf(sending, user)).toBe('alone-new@example.com')
    await lone.close()
  })

  test('that the new address has agreed to is repeated to the current one alone, never its code to the new one', async ({
    sending,
  }) => {
    const { service, receiver } = sending
    const user = await changing(sending, 'again@example.com', 'again-new@example.com')
    const first = await receiver.next({ type: 'email_change', to: 'again-new@example.com' })
    await follow(sending, first)
    service.clock.advance({ seconds: 901 })
    expect((await service.post('/resend', { type: 'email_change', email: 'again@example.com' })).status).toBe(200)
    const { email_data: data } = await receiver.next({ type: 'email_change', to: 'again@example.com' })
    expect(data).toMatchObject({ recipient: 'again@example.com', recipient_new: '' })
    // Senders would write these to the new address, and they confirm nothing.
    const toNew = { type: 'email_change', email: 'again-new@example.com', token: data.token_new }
    expect((await service.post('/verify', toNew)).status).toBe(403)
    expect(fragmentOf(await follow(sending, { email_data: data } as Question))).toHaveProperty('error')
    expect(await emailOf(sending, user)).toBe('again@example.com')
    await service.get(linkOf(data, data.token_hash_new))
    expect(await emailOf(sending, user)).toBe('again-new@example.com')
  })
})

describe('an SMS', () => {
  test('comes with its number, channel and text, and its code confirms', async ({ sending }) => {
    const { service, receiver } = sending
    const phone = '4915112345678'
    await service.post('/signup', { phone, password, channel: 'whatsapp' })
    const asked = await receiver.next({ to: phone })
    const { otp } = asked.sms
    expect(asked).toMatchObject({
      metadata: { name: 'send-sms' },
      user: { phone },
      sms: { phone, channel: 'whatsapp', message: `Your code is ${otp}`, kind: 'phone_confirmation' },
    })
    expect(asked.sms).not.toHaveProperty('sms_type')
    const { body } = await service.post('/verify', { type: 'sms', phone, token: otp })
    const auth = { authorization: `Bearer ${body.access_token}` }
    const reauthenticated = await service.get('/reauthenticate', auth)
    expect(reauthenticated.status).toBe(200)
    expect((await receiver.next({ to: phone })).sms).toMatchObject({ kind: 'reauthentication' })

    service.clock.advance({ seconds: 61 })
    await service.put('/user', { phone: '4915112345679' }, auth)
    expect(await receiver.next({ to: '4915112345679' })).toMatchObject({
      user: { phone, new_phone: '4915112345679' },
      sms: { kind: 'phone_change', phone: '4915112345679' },
    })
    const factor = { factor_type: 'phone', phone: '+4915112345680' }
    const { body: enrolled } = await service.post('/factors', factor, auth)
    await service.post(`/factors/${enrolled.id}/challenge`, {}, auth)
    const second = await receiver.next({ to: '4915112345680' })
    expect(second).toMatchObject({ user: { phone }, sms: { sms_type: 'mfa', kind: 'second_factor' } })
  })
})

test('generated links, fixed codes and addresses without an account ask nothing', async ({ sending }) => {
  const { service, receiver } = sending
  await service.settled()
  const asked = receiver.requests.length
  await service.post('/admin/generate_link', { type: 'signup', email: 'linked@example.com', password }, service.admin)
  await service.post('/otp', { email: 'fixed@example.com' })
  await service.post('/otp', { phone: '4915100000001' })
  await service.post('/recover', { email: 'nobody@example.com' })
  await service.post('/otp', { phone: '4915100000009', create_user: false })
  await service.settled()
  expect(receiver.requests.length).toBe(asked)
})
