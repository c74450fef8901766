import { expect } from 'vitest'
import { codeIn, fragmentOf, linkPath, queryOf, startTestService, test, tokenIn } from '../../../../test/service.ts'

test('an invited address gets a mail and an account; the invitee confirms by link', async ({ service }) => {
  const { status, body } = await service.post(
    '/invite',
    { email: 'Guest@example.com', data: { team: 1 } },
    service.admin,
  )
  expect(status).toBe(200)
  expect(body).toMatchObject({ email: 'guest@example.com', role: 'authenticated' })
  expect(body.user_metadata).toEqual({ team: 1 })
  expect(body.invited_at).toBe(body.confirmation_sent_at)
  const mail = await service.mailbox.waitFor('guest@example.com')
  expect(linkPath(mail.text)).toContain('type=invite')
  expect(fragmentOf(await service.get(linkPath(mail.text)))).toMatchObject({ type: 'invite' })
})

test('verified as a sign-up the invitee must choose a password', async ({ service }) => {
  await service.post('/invite', { email: 'chooses@example.com' }, service.admin)
  const mail = await service.mailbox.waitFor('chooses@example.com')
  const verify = { type: 'signup', email: 'chooses@example.com', token: codeIn(mail.text) }
  expect(await service.post('/verify', verify)).toMatchObject({
    status: 400,
    body: { error_code: 'validation_failed' },
  })
  expect((await service.post('/verify', { ...verify, password: 'correct horse' })).status).toBe(200)
  const signIn = { email: 'chooses@example.com', password: 'correct horse' }
  expect((await service.post('/token?grant_type=password', signIn)).status).toBe(200)
})

test('with a challenge the link gives the browser a code for the verifier', async ({ service }) => {
  const email = 'challenged@example.com'
  const verifier = 'v'.repeat(43)
  await service.post('/invite', { email, code_challenge: verifier, code_challenge_method: 'plain' }, service.admin)
  const { code } = queryOf(await service.get(linkPath((await service.mailbox.waitFor(email)).text)))
  const exchanged = await service.post('/token?grant_type=pkce', { auth_code: code, code_verifier: verifier })
  expect(exchanged.body.user.email).toBe(email)
})

test('may be repeated at once while unconfirmed, and then is refused', async ({ service }) => {
  const invite = () => service.post('/invite', { email: 'twice@example.com' }, service.admin)
  const [first, second] = [await invite(), await invite()]
  expect([first.status, second.status, second.body.id]).toEqual([200, 200, first.body.id])
  await service.settled()
  // The first one has left only if it was on its way when the second one replaced it; it may come later, too.
  const tokens = service.mailbox.messages({ to: 'twice@example.com' }).map(({ text }) => tokenIn(text))
  const verify = async (token_hash: string) => (await service.post('/verify', { type: 'invite', token_hash })).status
  const statuses = await Promise.all(tokens.map(verify))
  expect(statuses.filter((status) => status === 200)).toHaveLength(1)
  expect(await invite()).toMatchObject({ status: 422, body: { error_code: 'email_exists' } })
})

test('works where sign-ups are closed', async () => {
  const service = await startTestService({ AUTH_DISABLE_SIGNUP: 'true' })
  expect((await service.post('/invite', { email: 'only@example.com' }, service.admin)).status).toBe(200)
  await service.close()
})

test('an invitation takes away the password a stranger signed up with', async ({ service }) => {
  const email = 'preempted@example.com'
  await service.post('/signup', { email, password: 'the stranger knows' })
  const first = await service.mailbox.waitFor(email)
  await service.post('/invite', { email }, service.admin)
  const mail = await service.mailbox.waitFor(email, { after: first })
  expect(fragmentOf(await service.get(linkPath(mail.text)))).toMatchObject({ type: 'invite' })
  const stranger = await service.post('/token?grant_type=password', { email, password: 'the stranger knows' })
  expect(stranger.body.error_code).toBe('email_not_confirmed')
})

test('whose invitee chooses a password is theirs, even where a stranger had signed up the address', async ({
  service,
}) => {
  const email = 'chooses-after@example.com'
  await service.post('/signup', { email, password: 'the stranger knows' })
  const first = await service.mailbox.waitFor(email)
  await service.post('/invite', { email }, service.admin)
  const mail = await service.mailbox.waitFor(email, { after: first })
  const verify = { type: 'signup', token_hash: tokenIn(mail.text) }
  expect(await service.post('/verify', verify)).toMatchObject({
    status: 400,
    body: { error_code: 'validation_failed' },
  })
  expect((await service.post('/verify', { ...verify, password: 'my own words' })).status).toBe(200)
  const signIn = (password: string) => service.post('/token?grant_type=password', { email, password })
  expect((await signIn('my own words')).status).toBe(200)
  expect((await signIn('the stranger knows')).body.error_code).toBe('email_not_confirmed')
})

test.for<[string, object, number]>([
  ['no address', {}, 400],
  ['a malformed address', { email: 'a' }, 400],
])('%s is refused', async ([, body, status], { service }) => {
  expect((await service.post('/invite', body, service.admin)).status).toBe(status)
})

test('is for admins', async ({ service }) => {
  expect((await service.post('/invite', { email: 'a@example.com' })).status).toBe(401)
})
