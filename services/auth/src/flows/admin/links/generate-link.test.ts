import { describe, expect } from 'vitest'
import { fragmentOf, queryOf, startTestService, type TestService, test } from '../../../../test/service.ts'

const generate = (service: TestService, body: object) => service.post('/admin/generate_link', body, service.admin)

const follow = (service: TestService, { action_link }: { action_link: string }) => {
  const { pathname, search } = new URL(action_link)
  return service.get(pathname + search)
}

describe('POST /admin/generate_link', () => {
  test.for(['magiclink', 'recovery'])('%s signs a known user in by link, code or hash', async (type, { service }) => {
    const email = `link-${type}@example.com`
    const { userId } = await service.signedIn(email)
    service.mailbox.clear()
    const { status, body } = await generate(service, { type, email })
    expect([status, body.id, body.email, body.verification_type]).toEqual([200, userId, email, type])
    expect(body.action_link).toMatch(/^https:\/\/auth\.example\/verify\?token=[\w-]+&type=\w+&redirect_to=/)
    expect(fragmentOf(await follow(service, body))).toMatchObject({ type })
    const { body: second } = await generate(service, { type, email })
    expect(await service.post('/verify', { type: 'email', email, token: second.email_otp })).toMatchObject({
      status: 200,
    })
    const { body: third } = await generate(service, { type, email })
    expect(await service.post('/verify', { type, token_hash: third.hashed_token })).toMatchObject({ status: 200 })
    expect(service.mailbox.messages()).toEqual([])
  })

  test('signup makes the account, with its data and password', async ({ service }) => {
    const email = 'made@example.com'
    expect(await generate(service, { type: 'signup', email })).toMatchObject({ status: 400 })
    expect(await generate(service, { type: 'signup', email, password: '123' })).toMatchObject({ status: 422 })
    const { body } = await generate(service, {
      type: 'signup',
      email,
      password: 'correct horse',
      data: { plan: 'pro' },
    })
    expect([body.verification_type, body.user_metadata]).toEqual(['signup', { plan: 'pro' }])
    await follow(service, body)
    expect((await service.post('/token?grant_type=password', { email, password: 'correct horse' })).status).toBe(200)
    expect(await generate(service, { type: 'signup', email, password: 'correct horse' })).toMatchObject({
      status: 422,
      body: { error_code: 'email_exists' },
    })
  })

  test('signup of an account that waits replaces what it was registered with; a second one adds data', async ({
    service,
  }) => {
    const email = 'waiting@example.com'
    const first = await service.post('/signup', { email, password: 'correct horse', data: { a: 1, b: 1 } })
    expect(first.status).toBe(200)
    const { body } = await generate(service, { type: 'signup', email, password: 'another horse', data: { b: 2 } })
    expect([body.verification_type, body.user_metadata]).toEqual(['signup', { b: 2 }])
    const second = await generate(service, { type: 'signup', email, data: { c: 3 } })
    expect(second.body.user_metadata).toEqual({ b: 2, c: 3 })
    await follow(service, second.body)
    const signIn = (password: string) => service.post('/token?grant_type=password', { email, password })
    expect([(await signIn('correct horse')).status, (await signIn('another horse')).status]).toEqual([400, 200])
  })

  test('a target is in the link as given, except for characters that would end or change it', async ({ service }) => {
    const own = await service.with({ AUTH_URI_ALLOW_LIST: 'http://localhost:9999/**' })
    const linkTo = async (redirect_to: string) =>
      (await generate(own, { type: 'magiclink', email: 'targets@example.com', redirect_to })).body.action_link
    expect(await linkTo('http://localhost:9999/welcome')).toMatch(/&redirect_to=http:\/\/localhost:9999\/welcome$/)
    const hostile = 'http://localhost:9999/a?b=1&type=recovery%26x+y'
    const link = new URL(await linkTo(hostile))
    expect([...link.searchParams.keys()]).toEqual(['token', 'type', 'redirect_to'])
    expect(link.searchParams.get('redirect_to')).toBe(hostile)
    await own.close()
  })

  test('magiclink for an unknown address signs up', async ({ service }) => {
    const { body } = await generate(service, { type: 'magiclink', email: 'unknown@example.com' })
    expect(body.verification_type).toBe('signup')
    expect(fragmentOf(await follow(service, body))).toMatchObject({ type: 'signup' })
  })

  test('invite makes an account that its invitee takes over', async ({ service }) => {
    const { body } = await generate(service, { type: 'invite', email: 'guest@example.com', data: { team: 1 } })
    expect(body).toMatchObject({ verification_type: 'invite', user_metadata: { team: 1 } })
    expect(body.invited_at).toBeTruthy()
    service.clock.advance({ seconds: 6 * 86_400 })
    expect(fragmentOf(await follow(service, body))).toMatchObject({ type: 'invite' })
  })

  test('email_change_* are the two links of a change of address', async ({ service }) => {
    const { auth } = await service.signedIn('link-old@example.com')
    const order = { email: 'link-old@example.com', new_email: 'link-new@example.com' }
    const current = await generate(service, { type: 'email_change_current', ...order })
    expect(current.body.action_link).toContain('type=email_change')
    expect(fragmentOf(await follow(service, current.body))).toHaveProperty('message')
    const next = await generate(service, { type: 'email_change_new', ...order })
    // Asking for the second link starts the change again; both of one change are needed.
    expect(fragmentOf(await follow(service, next.body))).toHaveProperty('message')
    expect((await service.get('/user', auth)).body.email).toBe('link-old@example.com')
  })

  // contract/auth-core.md 18, BUG14.
  test('both links of a change of address, made before either is followed, change it', async ({ service }) => {
    const { auth } = await service.signedIn('both-old@example.com')
    const order = { email: 'both-old@example.com', new_email: 'both-new@example.com' }
    const current = await generate(service, { type: 'email_change_current', ...order })
    const next = await generate(service, { type: 'email_change_new', ...order })
    await follow(service, current.body)
    const answer = await service.post('/verify', { type: 'email_change', token_hash: next.body.hashed_token })
    expect(answer).toMatchObject({ status: 200, body: { user: { email: 'both-new@example.com' } } })
    expect((await service.get('/user', auth)).body.email).toBe('both-new@example.com')
  })

  test.for(['signup', 'invite', 'magiclink', 'recovery', 'email_change_new'])(
    '%s with a challenge gives the browser a code for the verifier',
    async (type, { service: shared }) => {
      const service = await shared.with({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
      const email = `challenged-${type}@example.com`
      if (!['signup', 'invite'].includes(type)) await service.signedIn(email)
      const verifier = 'v'.repeat(43)
      const challenge = { code_challenge: verifier, code_challenge_method: 'plain' }
      const more = { password: 'correct horse', new_email: `next-${email}` }
      const { body } = await generate(service, { type, email, ...more, ...challenge })
      const { code, ...rest } = queryOf(await follow(service, body))
      expect([typeof code, rest]).toEqual(['string', {}])
      const exchange = (code_verifier: string) =>
        service.post('/token?grant_type=pkce', { auth_code: code, code_verifier })
      expect((await exchange('w'.repeat(43))).body.error_code).toBe('bad_code_verifier')
      expect((await exchange(verifier)).body.user.id).toBe(body.id)
      await service.close()
    },
  )

  test('redirects only where redirects may go', async ({ service }) => {
    await service.signedIn('target@example.com')
    const order = { type: 'magiclink', email: 'target@example.com' }
    const allowed = await generate(service, { ...order, redirect_to: 'https://site.example/deep' })
    expect(allowed.body.redirect_to).toBe('https://site.example/deep')
    const refused = await generate(service, { ...order, redirect_to: 'https://evil.example/' })
    expect(refused.body.redirect_to).toBe('https://site.example')
  })

  test.for<[string, object, number, string]>([
    ['an unknown type', { type: 'sms', email: 'a@example.com' }, 400, 'validation_failed'],
    ['no type', { email: 'a@example.com' }, 400, 'validation_failed'],
    [
      'half a challenge',
      { type: 'magiclink', email: 'someone@example.com', code_challenge: 'c'.repeat(43) },
      400,
      'validation_failed',
    ],
    ['a malformed address', { type: 'magiclink', email: 'a' }, 400, 'validation_failed'],
    ['recovery of nobody', { type: 'recovery', email: 'none@example.com' }, 404, 'user_not_found'],
    [
      'a change of nobody',
      { type: 'email_change_new', email: 'none@example.com', new_email: 'n@example.com' },
      404,
      'user_not_found',
    ],
    ['a change of nobody to nothing', { type: 'email_change_new', email: 'none@example.com' }, 404, 'user_not_found'],
    ['a change to nothing', { type: 'email_change_new', email: 'someone@example.com' }, 400, 'validation_failed'],
    [
      'a change to what is no address',
      { type: 'email_change_current', email: 'someone@example.com', new_email: 'nothing' },
      400,
      'validation_failed',
    ],
    [
      'a change to an address that is taken',
      { type: 'email_change_new', email: 'someone@example.com', new_email: 'somebody-else@example.com' },
      422,
      'email_exists',
    ],
    ['an invitation of who is here already', { type: 'invite', email: 'someone@example.com' }, 422, 'email_exists'],
  ])('with %s is refused', async ([, body, status, code], { service }) => {
    for (const email of ['someone@example.com', 'somebody-else@example.com']) {
      await service.post('/admin/users', { email, email_confirm: true }, service.admin)
    }
    expect(await generate(service, body)).toMatchObject({ status, body: { error_code: code } })
  })

  test('a link for the current address needs secured changes', async () => {
    const service = await startTestService({ AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' })
    await service.post('/admin/users', { email: 'a@example.com' }, service.admin)
    const order = { type: 'email_change_current', email: 'a@example.com', new_email: 'b@example.com' }
    expect(await generate(service, order)).toMatchObject({ status: 400 })
    expect(await generate(service, { ...order, email: 'nobody@example.com' })).toMatchObject({ status: 404 })
    await service.close()
  })

  test('is for admins', async ({ service }) => {
    const { auth } = await service.signedIn()
    const body = { type: 'magiclink', email: 'a@example.com' }
    expect(await service.post('/admin/generate_link', body)).toMatchObject({ status: 401 })
    expect(await service.post('/admin/generate_link', body, auth)).toMatchObject({
      status: 403,
      body: { error_code: 'not_admin' },
    })
  })
})
