import { describe, expect } from 'vitest'
import {
  codeIn,
  fragmentOf,
  linkPath,
  queryOf,
  startTestService,
  type TestService,
  test,
  tokenIn,
} from '../../../test/service.ts'

let counter = 0

/** A user who wants another address, and the mails both addresses got. */
async function wantsChange(service: TestService) {
  const [from, to] = [`from-${++counter}@example.com`, `to-${counter}@example.com`]
  const user = await service.signedUp(from)
  const confirmation = await service.mailbox.waitFor(from)
  const answer = await service.put('/user', { email: to }, user.auth)
  expect(answer).toMatchObject({ status: 200, body: { email: from, new_email: to } })
  expect(answer.body.email_change_sent_at).toBeTruthy()
  const [current, next] = await Promise.all([
    service.mailbox.waitFor(from, { after: confirmation }),
    service.mailbox.waitFor(to),
  ])
  return { ...user, from, to, current, next, email: async () => (await service.get('/user', user.auth)).body.email }
}

const OTHER = 'Confirmation link accepted. Please proceed to confirm link sent to the other email'

describe('a change of e-mail address', () => {
  test.for(['current', 'next'] as const)('needs both links; the %s one may come first', async (first, { service }) => {
    const change = await wantsChange(service)
    const second = first === 'current' ? 'next' : 'current'
    const half = await service.get(linkPath(change[first].text))
    expect([half.status, fragmentOf(half)]).toEqual([303, { message: OTHER, sb: '' }])
    expect(await change.email()).toBe(change.from)
    // The same link again is not the other one.
    expect(fragmentOf(await service.get(linkPath(change[first].text)))).toMatchObject({ error_code: 'otp_expired' })
    expect(await change.email()).toBe(change.from)
    expect(fragmentOf(await service.get(linkPath(change[second].text)))).toMatchObject({ type: 'email_change' })
    const { body } = await service.get('/user', change.auth)
    expect(body).toMatchObject({
      email: change.to,
      identities: [{ identity_data: { email: change.to, email_verified: true } }],
    })
    expect(body).not.toHaveProperty('new_email')
  })

  test('needs both codes, each with the address it was sent to', async ({ service }) => {
    const { current, next, from, to, email } = await wantsChange(service)
    const verify = (address: string, token: string) =>
      service.post('/verify', { type: 'email_change', email: address, token })
    expect(await verify(to, codeIn(current.text))).toMatchObject({ status: 403, body: { error_code: 'otp_expired' } })
    const half = await verify(from, codeIn(current.text))
    expect(half).toMatchObject({ status: 200, body: { code: '200', msg: OTHER } })
    expect((await verify(from, codeIn(current.text))).status).toBe(403)
    expect(await email()).toBe(from)
    expect(await verify(to, codeIn(next.text))).toMatchObject({
      status: 200,
      body: { type: 'email_change', user: { email: to } },
    })
  })

  test('is reported to the old address once both have agreed, even where notifications are disabled', async ({
    service,
  }) => {
    const { current, next, from } = await wantsChange(service)
    await service.get(linkPath(current.text))
    await service.settled()
    expect(service.mailbox.messages({ to: from }).at(-1)?.subject).not.toBe('Your email address was changed')
    await service.get(linkPath(next.text))
    expect((await service.mailbox.waitFor(from, { after: current })).subject).toBe('Your email address was changed')
  })

  test('both links at once change it, and only once', async ({ service }) => {
    const { current, next, to, email } = await wantsChange(service)
    const paths = [current, next].map(({ text }) => linkPath(text))
    const answers = await Promise.all([...paths, ...paths].map((path) => service.get(path)))
    expect(answers.map(fragmentOf).filter(({ access_token }) => access_token)).toHaveLength(1)
    expect(await email()).toBe(to)
  })

  test('needs only the new address where that is set, and is reported to the old one', async () => {
    const service = await startTestService({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
    const { auth } = await service.signedIn('single@example.com')
    service.mailbox.clear()
    await service.put('/user', { email: 'single-new@example.com' }, auth)
    const mail = await service.mailbox.waitFor('single-new@example.com')
    expect(service.mailbox.messages({ to: 'single@example.com' })).toEqual([])
    expect(await service.post('/verify', { type: 'email_change', token_hash: tokenIn(mail.text) })).toMatchObject({
      body: { user: { email: 'single-new@example.com' } },
    })
    // Sent although notifications are disabled: the change may be by a thief with a session.
    const told = await service.mailbox.waitFor('single@example.com')
    expect(told.subject).toBe('Your email address was changed')
    expect(told.text).toContain('single-new@example.com')
    await service.close()
  })

  test('is not reported to an old address that only a setting had confirmed', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_MAILER_AUTOCONFIRM: 'true' })
    const { body } = await service.post('/signup', { email: 'mistyped@example.com', password: 'correct horse' })
    const auth = { authorization: `Bearer ${body.access_token}` }
    await service.put('/user', { email: 'right@example.com' }, auth)
    const mail = await service.mailbox.waitFor('right@example.com')
    const changed = await service.post('/verify', { type: 'email_change', token_hash: tokenIn(mail.text) })
    expect(changed).toMatchObject({ body: { user: { email: 'right@example.com' } } })
    await service.settled()
    expect(service.mailbox.messages({ to: 'mistyped@example.com' })).toEqual([])
    await service.close()
  })

  test('to the address of another user is refused, including one taken meanwhile', async ({ service }) => {
    await service.signedIn('taken@example.com')
    const { auth } = await service.signedIn('wants-taken@example.com')
    const taken = { status: 422, body: { error_code: 'email_exists' } }
    expect(await service.put('/user', { email: 'Taken@example.com' }, auth)).toMatchObject(taken)
    const change = await wantsChange(service)
    await service.get(linkPath(change.current.text))
    await service.deps.db
      .updateTable('users')
      .set({ email: change.to })
      .where('email', '=', 'taken@example.com')
      .execute()
    expect(
      await service.post('/verify', { type: 'email_change', token_hash: tokenIn(change.next.text) }),
    ).toMatchObject(taken)
    expect(await change.email()).toBe(change.from)
  })

  test('asked for again within 15 minutes is refused', async ({ service }) => {
    const { auth } = await wantsChange(service)
    expect(await service.put('/user', { email: 'elsewhere@example.com' }, auth)).toMatchObject({
      status: 429,
      body: { error_code: 'over_email_send_rate_limit' },
    })
  })

  test('a newer request voids the links of the older one', async ({ service }) => {
    const older = await wantsChange(service)
    service.clock.advance({ seconds: 901 })
    const { body } = await service.post('/token?grant_type=password', { email: older.from, password: 'correct horse' })
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await service.put('/user', { email: 'newer-wish@example.com' }, auth)).status).toBe(200)
    for (const { text } of [older.current, older.next]) {
      expect(fragmentOf(await service.get(linkPath(text)))).toMatchObject({ error_code: 'otp_expired' })
    }
  })
})

describe('an anonymous user', () => {
  const settings = { AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true' }

  test('becomes permanent with the confirmation of an address, and keeps id, data and password', async ({
    service: shared,
  }) => {
    const service = await shared.with(settings)
    const { body } = await service.post('/signup', { data: { theme: 'dark' } })
    const auth = { authorization: `Bearer ${body.access_token}` }
    const alone = await service.put('/user', { password: 'correct horse' }, auth)
    expect(alone).toMatchObject({ status: 422, body: { error_code: 'validation_failed' } })
    const asked = await service.put('/user', { email: 'named@example.com', password: 'correct horse' }, auth)
    expect(asked).toMatchObject({ status: 200, body: { is_anonymous: true, new_email: 'named@example.com' } })
    const mail = await service.mailbox.waitFor('named@example.com')
    // There is no address that it changes from.
    expect(mail.text).toContain('named@example.com is to become the address of your account at https://site.example.')
    await service.get(linkPath(mail.text))
    const { body: user } = await service.get('/user', auth)
    expect(user).toMatchObject({
      id: body.user.id,
      is_anonymous: false,
      email: 'named@example.com',
      app_metadata: { provider: 'email', providers: ['email'] },
      user_metadata: { theme: 'dark' },
    })
    expect(user.identities).toHaveLength(1)
    expect(user.email_confirmed_at).toBeTruthy()
    const signIn = { email: 'named@example.com', password: 'correct horse' }
    expect((await service.post('/token?grant_type=password', signIn)).status).toBe(200)
    await service.close()
  })

  test('becomes permanent at once where addresses need no proof; a permanent user does not', async ({
    service: shared,
  }) => {
    const service = await shared.with({ ...settings, AUTH_MAILER_AUTOCONFIRM: 'true' })
    const { body } = await service.post('/signup', {})
    const auth = { authorization: `Bearer ${body.access_token}` }
    expect((await service.put('/user', { email: 'at-once@example.com' }, auth)).body).toMatchObject({
      is_anonymous: false,
      email: 'at-once@example.com',
      identities: [{ provider: 'email' }],
    })
    const later = await service.put('/user', { email: 'later@example.com' }, auth)
    expect(later.body).toMatchObject({ email: 'at-once@example.com', new_email: 'later@example.com' })
    await service.close()
  })
})

test('the current password is required where that is set, but not in a session begun by a mailed link', async () => {
  const service = await startTestService({ AUTH_SECURITY_UPDATE_PASSWORD_REQUIRE_CURRENT_PASSWORD: 'true' })
  const { auth } = await service.signedIn('careful@example.com')
  const change = (body: object, who = auth) => service.put('/user', { password: 'a new horse', ...body }, who)
  expect(await change({})).toMatchObject({ status: 400, body: { error_code: 'current_password_required' } })
  expect(await change({ current_password: 'wrong' })).toMatchObject({
    status: 400,
    body: { error_code: 'current_password_invalid' },
  })
  expect((await change({ current_password: 'correct horse' })).status).toBe(200)
  const verifier = 'v'.repeat(43)
  const pkce = { code_challenge: verifier, code_challenge_method: 'plain' }
  for (const [path, flow] of [
    ['/recover', {}],
    ['/otp', {}],
    ['/recover', pkce],
    ['/otp', pkce],
  ] as const) {
    service.mailbox.clear()
    await service.post(path, { email: 'careful@example.com', ...flow })
    const followed = await service.get(linkPath((await service.mailbox.waitFor('careful@example.com')).text))
    const { code: auth_code } = queryOf(followed)
    const token = auth_code
      ? (await service.post('/token?grant_type=pkce', { auth_code, code_verifier: verifier })).body.access_token
      : fragmentOf(followed).access_token
    const came = { authorization: `Bearer ${token}` }
    const next = `one more horse ${path} ${Object.keys(flow).length}`
    expect((await change({ password: next }, came)).status).toBe(200)
    service.clock.advance({ seconds: 61 })
  }
  await service.close()
})
