// Addresses that an admin, or the user, takes off an account. The proofs that the user needs:
// ../../core/freshness/ways-in.test.ts.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshEmail, freshPhone } from '../../../test/admin.ts'
import { identityIn, newPerson } from '../../../test/linked-identities.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../../../test/openid-provider.ts'
import { refresh } from '../../../test/second-factors.ts'
import {
  codeIn,
  fragmentOf,
  linkPath,
  type SignedIn,
  startTestService,
  type TestService,
  toSignedIn,
} from '../../../test/service.ts'
import { SMS_GATEWAY } from '../../../test/sms-config.ts'

const password = 'correct horse'

let google: OpenIdProvider
let service: TestService
beforeAll(async () => {
  google = await startOpenIdProvider()
  service = await startTestService({
    ...google.settings('GOOGLE'),
    AUTH_SMS_AUTOCONFIRM: 'true',
    AUTH_RATE_LIMIT_EMAIL_SENT: '1000',
    AUTH_SMTP_MAX_FREQUENCY: '0',
  })
})
afterAll(async () => {
  await service.close()
  await google.close()
})

/** A user with both addresses, confirmed, and a password. */
async function withBoth() {
  const [email, phone] = [freshEmail(), freshPhone()]
  const user = { email, phone, password, email_confirm: true, phone_confirm: true }
  const { id } = (await service.post('/admin/users', user, service.admin)).body
  return { id, email, phone, ...(await signIn({ email })) }
}

/** A user with a confirmed e-mail address and a password. */
async function withEmail() {
  const email = freshEmail()
  const { id } = (await service.post('/admin/users', { email, password, email_confirm: true }, service.admin)).body
  return { id, email, ...(await signIn({ email })) }
}

const signIn = async (address: object): Promise<SignedIn> =>
  toSignedIn((await service.post('/token?grant_type=password', { ...address, password })).body)

const identitiesOf = (body: { identities: { provider: string }[] }) => body.identities.map(({ provider }) => provider)

/** Both ways of removing: as the admin, and as the user. */
const doors = {
  'an admin': ({ id }: { id: string }, change: object) => service.put(`/admin/users/${id}`, change, service.admin),
  'the user': ({ auth }: { auth: SignedIn['auth'] }, change: object) => service.put('/user', change, auth),
}

describe.for(Object.entries(doors))('%s', ([, put]) => {
  test.for(['email', 'phone'] as const)('removes the %s with its identity, links and codes', async (channel) => {
    const user = await withBoth()
    const other = channel === 'email' ? 'phone' : 'email'
    await service.post('/recover', { email: user.email })
    const { text } = await service.mailbox.waitFor(user.email)
    const { status, body } = await put(user, { [channel]: '' })
    expect([status, body[channel], body[other], identitiesOf(body)]).toEqual([200, '', user[other], [other]])
    expect(body).toMatchObject({ app_metadata: { provider: other, providers: [other] } })
    expect(body).not.toHaveProperty(`${channel}_confirmed_at`)
    expect(fragmentOf(await service.get(linkPath(text)))).toMatchObject({ error_code: 'otp_expired' })
    const refused = await service.post('/token?grant_type=password', { [channel]: user[channel], password })
    expect(refused).toMatchObject({ status: 400, body: { error_code: 'invalid_credentials' } })
    expect((await signIn({ [other]: user[other] })).userId).toBe(user.id)
    // Free for another user.
    const next = { [channel]: user[channel], [`${channel}_confirm`]: true }
    expect((await service.post('/admin/users', next, service.admin)).status).toBe(200)
  })

  test('ends sessions that began with a link or code, and not that of the request or of a password', async () => {
    const user = await withBoth()
    const beside = await signIn({ phone: user.phone })
    await service.post('/otp', { email: user.email })
    const token = codeIn((await service.mailbox.waitFor(user.email)).text)
    const byCode = toSignedIn((await service.post('/verify', { type: 'email', email: user.email, token })).body)
    expect((await put(user, { email: '' })).status).toBe(200)
    const statuses = []
    for (const { refreshToken } of [user, beside, byCode]) statuses.push((await refresh(service, refreshToken)).status)
    expect(statuses).toEqual([200, 200, 400])
  })

  test('cancels a pending change with it', async () => {
    const user = await withBoth()
    const email = freshEmail()
    expect((await service.put('/user', { email }, user.auth)).body.new_email).toBe(email)
    const { text } = await service.mailbox.waitFor(email)
    const { body } = await put(user, { email: '' })
    expect(body).not.toHaveProperty('new_email')
    expect(fragmentOf(await service.get(linkPath(text)))).toMatchObject({ error_code: 'otp_expired' })
  })

  test.for([{ email: '' }, { phone: '' }, { email: '', phone: '' }])('keeps the last way in: %o', async (change) => {
    const user = await withBoth()
    const first = Object.keys(change).length === 1 ? ('email' in change ? { phone: '' } : { email: '' }) : {}
    expect((await put(user, first)).status).toBe(200)
    expect(await put(user, change)).toMatchObject({
      status: 422,
      body: { error_code: 'single_identity_not_deletable' },
    })
    expect(identitiesOf((await service.get('/user', user.auth)).body)).toHaveLength(2 - Object.keys(first).length)
  })

  test('leaves an account at a provider as the only way in', async () => {
    const { email } = newPerson()
    const { userId: id, auth } = await service.signedIn(email)
    const iat = Math.floor(service.clock.now().getTime() / 1000)
    const id_token = await google.idToken({ sub: email, email, email_verified: true, iat, exp: iat + 300 })
    const signInThere = () => service.post('/token?grant_type=id_token', { provider: 'google', id_token })
    expect((await signInThere()).body.user.id).toBe(id)
    const { status, body } = await put({ id, auth }, { email: '' })
    expect([status, body.email, identitiesOf(body)]).toEqual([200, '', ['google']])
    expect(body.user_metadata).not.toHaveProperty('phone')
    const again = await signInThere()
    expect([again.status, again.body.user.id]).toEqual([200, id])
    expect(identityIn(again.body.user, 'google')).toBeTruthy()
  })

  test('changes nothing of a user who has none, nor where the member is null or absent', async () => {
    const user = await withEmail()
    await service.post('/recover', { email: user.email })
    const recovery = await service.mailbox.waitFor(user.email)
    const email = freshEmail()
    expect((await service.put('/user', { email }, user.auth)).body.new_email).toBe(email)
    for (const change of [{ phone: '' }, { email: null, phone: null }, {}]) {
      const { status, body } = await put(user, change)
      expect([status, body.email, body.new_email, identitiesOf(body)]).toEqual([200, user.email, email, ['email']])
    }
    expect(fragmentOf(await service.get(linkPath(recovery.text)))).toHaveProperty('access_token')
  })

  test('cancels the pending change to a number of a user who has none, and nothing else', async () => {
    const user = await withEmail()
    const email = freshEmail()
    const phone = '4915100000077'
    const bySms = await service.with({
      ...SMS_GATEWAY,
      AUTH_SMS_AUTOCONFIRM: 'false',
      AUTH_SMS_MAX_FREQUENCY: '0',
      AUTH_SMS_TEST_OTP: `${phone}:123456`,
    })
    const asked = await bySms.put('/user', { email, phone }, user.auth)
    expect(asked.body).toMatchObject({ new_email: email, new_phone: phone })
    const { body } = await put(user, { phone: '' })
    expect(body).toMatchObject({ email: user.email, new_email: email })
    expect(body).not.toHaveProperty('new_phone')
    const late = await bySms.post('/verify', { type: 'phone_change', phone, token: '123456' })
    expect(late.body.error_code).toBe('otp_expired')
    await bySms.close()
    for (const to of [user.email, email]) await service.get(linkPath((await service.mailbox.waitFor(to)).text))
    expect((await service.get('/user', user.auth)).body.email).toBe(email)
  })
})

test('an admin removes one address and gives the other in one request, also as the only way in', async () => {
  const { userId: id, auth } = await service.signedIn()
  const phone = freshPhone()
  const { status, body } = await doors['an admin']({ id }, { email: '', phone, phone_confirm: true })
  expect([status, body.email, body.phone, identitiesOf(body)]).toEqual([200, '', phone, ['phone']])
  expect((await service.get('/user', auth)).body.phone).toBe(phone)
})

test('a form of an admin that sends no number leaves the invitation of a user without one', async () => {
  const email = freshEmail()
  const { id } = (await service.post('/invite', { email }, service.admin)).body
  const { text } = await service.mailbox.waitFor(email)
  const form = { user_metadata: { team: 'a' }, phone: '' }
  expect((await service.put(`/admin/users/${id}`, form, service.admin)).status).toBe(200)
  expect(fragmentOf(await service.get(linkPath(text)))).toHaveProperty('access_token')
})

test('the user exchanges the only address for a number in one request, where a setting confirms it', async () => {
  const strict = await service.with({ ...SMS_GATEWAY, AUTH_SMS_AUTOCONFIRM: 'false' })
  const user = await withEmail()
  const change = { email: '', phone: freshPhone() }
  const refused = await strict.put('/user', change, user.auth)
  expect(refused).toMatchObject({ status: 422, body: { error_code: 'single_identity_not_deletable' } })
  const { status, body } = await doors['the user'](user, change)
  expect([status, body.email, body.phone, identitiesOf(body)]).toEqual([200, '', change.phone, ['phone']])
  expect((await signIn({ phone: change.phone })).userId).toBe(user.id)
  await strict.close()
})

test('an unproven address is no way in that an admin can leave', async () => {
  const user = { email: freshEmail(), phone: freshPhone(), phone_confirm: true }
  const { id } = (await service.post('/admin/users', user, service.admin)).body
  await service.deps.db.updateTable('users').set({ email_vouched: false }).where('id', '=', id).execute()
  expect((await doors['an admin']({ id }, { phone: '' })).status).toBe(422)
})

test('the removal is audited with its channel and reported to the removed address', async () => {
  for (const [name, put] of Object.entries(doors)) {
    const user = await withBoth()
    await put(user, { email: '' })
    await put(user, { email: '' })
    await service.settled()
    const mails = service.mailbox.messages({ to: user.email }).map(({ subject }) => subject)
    expect(mails).toEqual(name === 'an admin' ? [] : ['A sign-in method was removed from your account'])
    const { body } = await service.get('/admin/audit?per_page=1000&query=action:user_modified', service.admin)
    const payloads = body.map(
      ({ payload }: { payload: { actor_id: string; traits?: { user_id?: string } } }) => payload,
    )
    const own = payloads.filter((entry: (typeof payloads)[0]) => (entry.traits?.user_id ?? entry.actor_id) === user.id)
    const removed = own.map(({ traits }: (typeof payloads)[0]) => traits?.removed)
    // One entry per request, and the second found no address.
    expect([removed.length, removed.filter(Boolean)]).toEqual([2, [['email']]])
  }
})
