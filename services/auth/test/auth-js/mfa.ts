// Second factors, as an application and its admins use them.
import { expect } from 'vitest'
import { totpCode } from '../second-factors.ts'
import { browserWithKey } from './browser-with-key.ts'
import { adminOf, clientOf, password, type Running, signIn, smsCode, test } from './client.ts'

/** Each code works once: the first is the step before now, the next ones now's and the one after. */
const codes = ({ service }: Running, secret: string) =>
  [-1, 0, 1].map((skew) => totpCode(secret, service.clock.now(), skew)) as [string, string, string]

async function withTotp(at: Running, email: string) {
  const { client } = clientOf(at, 'implicit', { experimental: { recoveryCodes: true } })
  const { user } = await signIn(at, client, email)
  const { data, error } = await client.mfa.enroll({ factorType: 'totp', friendlyName: 'app', issuer: 'Acme' })
  if (error) throw error
  const [first, ...later] = codes(at, data.totp.secret)
  const verified = await client.mfa.challengeAndVerify({ factorId: data.id, code: first })
  if (verified.error) throw verified.error
  const { recovery_codes: recoveryCodes } = verified.data as unknown as { recovery_codes: string[] }
  return { client, user, email, factor: data, later, recoveryCodes }
}

test('enroll, challenge, verify and unenroll of an authenticator app', async ({ open }) => {
  const { client } = clientOf(open)
  const email = 'mfa-app@example.com'
  const { user } = await signIn(open, client, email)
  const enrolled = await client.mfa.enroll({ factorType: 'totp', friendlyName: 'my app', issuer: 'Acme' })
  expect(enrolled).toMatchObject({ error: null, data: { type: 'totp', friendly_name: 'my app' } })
  const { id = '', totp } = enrolled.data as NonNullable<typeof enrolled.data>
  expect(totp.qr_code).toMatch(/^data:image\/svg\+xml;utf-8,<\?xml[^#]*<\/svg>$/)
  expect(totp.uri).toContain(`secret=${totp.secret}`)
  expect((await client.mfa.listFactors()).data).toMatchObject({ all: [{ id, status: 'unverified' }], totp: [] })

  const challenge = await client.mfa.challenge({ factorId: id })
  expect(challenge).toMatchObject({ error: null, data: { type: 'totp' } })
  const challengeId = challenge.data?.id as string
  const wrong = await client.mfa.verify({ factorId: id, challengeId, code: 'wrong' })
  expect(wrong.error).toMatchObject({ status: 422, code: 'mfa_verification_failed' })
  const [first, second] = codes(open, totp.secret)
  const verified = await client.mfa.verify({ factorId: id, challengeId, code: first })
  expect(verified).toMatchObject({ error: null, data: { token_type: 'bearer', user: { id: user.id } } })
  expect((await client.mfa.listFactors()).data).toMatchObject({ all: [{ id }, {}], totp: [{ id, status: 'verified' }] })
  expect(await client.mfa.getAuthenticatorAssuranceLevel()).toMatchObject({
    error: null,
    data: {
      ...{ currentLevel: 'aal2', nextLevel: 'aal2' },
      currentAuthenticationMethods: [{ method: 'totp' }, { method: 'password' }],
    },
  })

  const { client: later } = clientOf(open)
  const { data } = await later.signInWithPassword({ email, password })
  const levels = { error: null, data: { currentLevel: 'aal1', nextLevel: 'aal2' } }
  expect(await later.mfa.getAuthenticatorAssuranceLevel()).toMatchObject(levels)
  expect(await later.mfa.getAuthenticatorAssuranceLevel(data.session?.access_token)).toMatchObject(levels)
  expect((await later.mfa.unenroll({ factorId: id })).error).toMatchObject({ status: 422, code: 'insufficient_aal' })
  expect((await later.mfa.challengeAndVerify({ factorId: id, code: second })).error).toBeNull()
  expect((await later.refreshSession()).error).toBeNull()
  expect(await later.mfa.unenroll({ factorId: id })).toMatchObject({ error: null, data: { id } })
  expect((await later.mfa.listFactors()).data?.all).toEqual([])
})

test('enroll, challenge and verify of a phone', async ({ open }) => {
  const { client } = clientOf(open)
  await signIn(open, client, 'mfa-phone@example.com')
  const phone = '4915100000401'
  const enrolled = await client.mfa.enroll({ factorType: 'phone', friendlyName: 'mobile', phone: `+${phone}` })
  expect(enrolled).toMatchObject({ error: null, data: { type: 'phone', phone: `+${phone}` } })
  const factorId = enrolled.data?.id as string
  const challenge = await client.mfa.challenge({ factorId, channel: 'sms' })
  const code = await smsCode(open, phone)
  const challengeId = challenge.data?.id as string
  expect((await client.mfa.verify({ factorId, challengeId, code })).error).toBeNull()
  expect((await client.mfa.listFactors()).data).toMatchObject({ phone: [{ id: factorId, status: 'verified' }] })
})

test('webauthn.register and webauthn.authenticate, and their steps one by one', async ({ open }) => {
  const email = 'mfa-key@example.com'
  const origin = 'https://site.example'
  const webauthn = { rpId: 'site.example', rpOrigins: [origin] }
  const [{ client }, { client: later }] = [clientOf(open), clientOf(open)]
  browserWithKey(origin)
  await signIn(open, client, email)
  const registered = await client.mfa.webauthn.register({ friendlyName: 'key', webauthn })
  expect(registered).toMatchObject({ error: null, data: { user: { email } } })
  const [factor] = (await client.mfa.listFactors()).data?.webauthn ?? []
  const factorId = factor?.id as string

  await later.signInWithPassword({ email, password })
  expect((await later.mfa.webauthn.authenticate({ factorId, webauthn })).error).toBeNull()
  expect((await later.mfa.getAuthenticatorAssuranceLevel()).data).toMatchObject({ currentLevel: 'aal2' })

  browserWithKey(origin)
  const second = await later.mfa.webauthn.enroll({ friendlyName: 'second key' })
  const { data } = await later.mfa.webauthn.challenge({ factorId: second.data?.id as string, webauthn })
  if (!data) throw new Error('no challenge')
  const answered = { ...data.webauthn, ...webauthn } as Parameters<typeof later.mfa.webauthn.verify>[0]['webauthn']
  const proven = await later.mfa.webauthn.verify({ ...data, webauthn: answered })
  expect(proven.error).toBeNull()
  expect((await later.mfa.listFactors()).data?.webauthn).toHaveLength(2)
})

test('recoveryCodes.getStatus, verify, regenerate, generate and unenroll', async ({ open }) => {
  const { email, factor, client, recoveryCodes } = await withTotp(open, 'mfa-codes@example.com')
  expect(await client.mfa.recoveryCodes.getStatus()).toMatchObject({
    error: null,
    data: { type: 'recovery_code', total: 10, remaining: 10 },
  })
  const { client: lost } = clientOf(open, 'implicit', { experimental: { recoveryCodes: true } })
  await lost.signInWithPassword({ email, password })
  expect((await lost.mfa.recoveryCodes.regenerate()).error).toMatchObject({ code: 'insufficient_aal' })
  const used = await lost.mfa.recoveryCodes.verify({ code: recoveryCodes[0] as string })
  expect(used).toMatchObject({ error: null, data: { user: { email } } })
  expect((await lost.mfa.getAuthenticatorAssuranceLevel()).data).toMatchObject({
    ...{ currentLevel: 'aal2', nextLevel: 'aal2' },
    currentAuthenticationMethods: [{ method: 'mfa/recovery_code' }, { method: 'password' }],
  })
  const renewed = await lost.mfa.recoveryCodes.regenerate()
  expect(renewed.data?.codes).toHaveLength(10)
  const again = await lost.mfa.recoveryCodes.generate({ friendlyName: 'paper' })
  expect(again.error).toMatchObject({ code: 'mfa_verified_factor_exists' })
  expect((await lost.mfa.recoveryCodes.unenroll()).error).toBeNull()
  expect((await lost.mfa.recoveryCodes.getStatus()).error).toMatchObject({ code: 'mfa_factor_not_found' })
  expect((await lost.mfa.recoveryCodes.generate({ friendlyName: 'paper' })).data).toMatchObject({
    ...{ total: 10, friendly_name: 'paper' },
  })
  expect((await lost.mfa.listFactors()).data?.recovery_code).toMatchObject([{ friendly_name: 'paper' }])
  expect((await lost.mfa.unenroll({ factorId: factor.id })).error).toBeNull()
})

test('admin.mfa lists and deletes factors', async ({ open }) => {
  const admin = adminOf(open)
  const { user, factor, client } = await withTotp(open, 'mfa-admin@example.com')
  const listed = await admin.mfa.listFactors({ userId: user.id })
  expect(listed).toMatchObject({ error: null, data: { factors: [{ id: factor.id, status: 'verified' }, {}] } })
  const deleted = await admin.mfa.deleteFactor({ userId: user.id, id: factor.id })
  // The library nests the answer once more than its types say.
  expect(deleted).toMatchObject({ error: null, data: { data: { id: factor.id } } } as object)
  expect((await admin.mfa.deleteFactor({ userId: user.id, id: factor.id })).error).toMatchObject({
    status: 404,
    code: 'mfa_factor_not_found',
  })
  await client.refreshSession()
  expect((await client.mfa.getAuthenticatorAssuranceLevel()).data).toMatchObject({ currentLevel: 'aal1' })
})
