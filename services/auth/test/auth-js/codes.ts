// The codes of mails and of messages to a phone.
import { describe, expect } from 'vitest'
import { codeIn, tokenIn } from '../service.ts'
import { adminOf, clientOf, newest, password, signIn, smsCode, test } from './client.ts'

test('verifyOtp takes the code of each mail, or the token of its link, and refuses others', async ({ open }) => {
  const { client } = clientOf(open)
  const email = 'codes@example.com'
  const next = async (ask: () => Promise<{ error: unknown }>) => {
    const before = newest(open, email)
    open.service.clock.advance({ seconds: 61 })
    expect((await ask()).error).toBeNull()
    return (await open.service.mailbox.waitFor(email, before ? { after: before } : {})).text
  }
  const signUp = await next(() => client.signUp({ email, password }))
  expect(await client.verifyOtp({ type: 'email', email, token: codeIn(signUp) })).toMatchObject({
    error: null,
    data: { user: { email } },
  })
  const magic = await next(() => client.signInWithOtp({ email }))
  expect((await client.verifyOtp({ type: 'magiclink', token_hash: tokenIn(magic) })).error).toBeNull()
  const recovery = await next(() => client.resetPasswordForEmail(email))
  expect((await client.verifyOtp({ type: 'recovery', email, token: codeIn(recovery) })).error).toBeNull()
  const wrong = await client.verifyOtp({ type: 'email', email, token: '000000' })
  expect(wrong.error).toMatchObject({ status: 403, code: 'otp_expired' })
})

test('reauthenticate sends the nonce that updateUser wants with a password', async ({ strict }) => {
  const { client } = clientOf(strict)
  const email = 'again@example.com'
  await signIn(strict, client, email)
  expect((await client.updateUser({ password: 'a new horse' })).error).toMatchObject({
    code: 'reauthentication_needed',
  })
  expect((await client.reauthenticate()).error).toBeNull()
  const nonce = codeIn((await strict.service.mailbox.waitFor(email)).text)
  const wrong = nonce === '000000' ? '111111' : '000000'
  expect((await client.updateUser({ password: 'a new horse', nonce: wrong })).error).toMatchObject({
    code: 'reauthentication_not_valid',
  })
  expect((await client.updateUser({ password: 'a new horse', nonce })).error).toBeNull()
  expect((await client.signInWithPassword({ email, password: 'a new horse' })).error).toBeNull()
})

describe('with a phone number', () => {
  test('signUp, resend, verifyOtp and signInWithPassword', async ({ open }) => {
    const { client } = clientOf(open)
    const phone = '4915100000101'
    expect(await client.signUp({ phone: `+${phone}`, password, options: { data: { plan: 'pro' } } })).toMatchObject({
      error: null,
      data: { session: null, user: { phone, user_metadata: { plan: 'pro' } } },
    })
    const first = await smsCode(open, phone)
    expect((await client.signInWithPassword({ phone, password })).error).toMatchObject({ code: 'phone_not_confirmed' })
    open.service.clock.advance({ seconds: 61 })
    expect(await client.resend({ type: 'sms', phone })).toMatchObject({
      error: null,
      data: { messageId: expect.any(String) },
    })
    const token = await smsCode(open, phone)
    if (token !== first) {
      expect((await client.verifyOtp({ type: 'sms', phone, token: first })).error).toMatchObject({
        code: 'otp_expired',
      })
    }
    expect(await client.verifyOtp({ type: 'sms', phone, token })).toMatchObject({
      error: null,
      data: { user: { phone, phone_confirmed_at: expect.any(String) }, session: { token_type: 'bearer' } },
    })
    expect(await client.signInWithPassword({ phone: `+${phone}`, password })).toMatchObject({
      error: null,
      data: { user: { phone } },
    })
  })

  test('signInWithOtp of a new and of a known number, and not of a new one that is not wanted', async ({ open }) => {
    const { client } = clientOf(open)
    const phone = '4915100000102'
    for (const options of [{ data: { plan: 'pro' } }, { shouldCreateUser: false }]) {
      expect((await client.signInWithOtp({ phone, options })).error).toBeNull()
      const verified = await client.verifyOtp({ type: 'sms', phone, token: await smsCode(open, phone) })
      expect(verified).toMatchObject({ error: null, data: { user: { phone, user_metadata: { plan: 'pro' } } } })
      open.service.clock.advance({ seconds: 61 })
    }
    const unknown = '4915100000103'
    expect((await client.signInWithOtp({ phone: unknown, options: { shouldCreateUser: false } })).error).toBeNull()
    await open.service.settled()
    expect(open.gateways.messages).toEqual([])
  })

  test('updateUser to another number, resend, and verifyOtp of the change', async ({ open }) => {
    const { client } = clientOf(open)
    const [from, to, email] = ['4915100000104', '4915100000105', 'number@example.com']
    const admin = adminOf(open)
    const { user } = await signIn(open, client, email)
    await admin.updateUserById(user.id, { phone: from, phone_confirm: true })
    expect(await client.updateUser({ phone: to })).toMatchObject({ error: null, data: { user: { new_phone: to } } })
    await smsCode(open, to)
    open.service.clock.advance({ seconds: 61 })
    expect((await client.resend({ type: 'phone_change', phone: from })).error).toBeNull()
    const token = await smsCode(open, to)
    expect(await client.verifyOtp({ type: 'phone_change', phone: to, token })).toMatchObject({
      error: null,
      data: { user: { phone: to, email } },
    })
    const { data } = await client.getUserIdentities()
    expect(data?.identities.map(({ provider }) => provider).sort()).toEqual(['email', 'phone'])
  })
})
