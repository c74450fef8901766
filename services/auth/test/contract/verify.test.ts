// GET and POST /verify: cases that no test beside the code shows.
import { createHash } from 'node:crypto'
import { perFile } from '@services/common/testing/per-file'
import { describe, expect } from 'vitest'
import { type Answer, fragmentOf, queryOf, startTestService, type TestService, test } from '../service.ts'

const password = 'correct horse'
const VERIFIER = 'v'.repeat(43)
const PKCE = {
  code_challenge: createHash('sha256').update(VERIFIER).digest('base64url'),
  code_challenge_method: 's256',
}
const PHONES = { AUTH_SMS_TEST_OTP: '4915100000001:111111,4915100000002:222222,4915100000003:333333' }

let count = 0
const freshEmail = () => `verify-${++count}@example.com`

interface Link {
  /** The address the code goes with. */
  email: string
  action_link: string
  email_otp: string
  hashed_token: string
}

const generate = async (service: TestService, body: object): Promise<Link> => {
  const answer = await service.post('/admin/generate_link', body, service.admin)
  expect([answer.status, body]).toEqual([200, body])
  return answer.body
}

/** One link of each kind, for an account that is as such a link finds it. */
const LINKS: Record<string, (service: TestService) => Promise<Link>> = {
  signup: (service) => generate(service, { type: 'signup', email: freshEmail(), password }),
  invite: (service) => generate(service, { type: 'invite', email: freshEmail() }),
  recovery: (service) => forKnown(service, 'recovery'),
  magiclink: (service) => forKnown(service, 'magiclink'),
  email_change: async (service) => {
    const next = freshEmail()
    return { ...(await forKnown(service, 'email_change_new', { new_email: next })), email: next }
  },
}
const KINDS = Object.keys(LINKS)

async function forKnown(service: TestService, type: string, more: object = {}): Promise<Link> {
  const email = freshEmail()
  await service.post('/admin/users', { email, password, email_confirm: true }, service.admin)
  return generate(service, { type, email, ...more })
}

const follow = (service: TestService, { action_link }: Pick<Link, 'action_link'>, target?: string) => {
  const { pathname, searchParams } = new URL(action_link)
  if (target !== undefined) searchParams.set('redirect_to', target)
  return service.get(`${pathname}?${searchParams}`)
}

/** A change of address by one confirmation; the two of secured changes have tests of their own. */
const SIMPLE = { AUTH_MAILER_SECURE_EMAIL_CHANGE_ENABLED: 'false' }

const simple = test.extend<{ service: TestService }>({
  service: perFile(() => startTestService(SIMPLE)),
})

describe('every kind', () => {
  simple.for(KINDS)('of %s: link, hash and code each work, once', async (type, { service }) => {
    const byHash = (link: Link) => service.post('/verify', { type, token_hash: link.hashed_token })
    const byCode = (link: Link) =>
      service.post('/verify', { type, email: link.email.toUpperCase(), token: link.email_otp })
    const ways: [(link: Link) => Promise<Answer>, number][] = [
      [byHash, 200],
      [byCode, 200],
      [(link) => follow(service, link), 303],
    ]
    for (const [way, status] of ways) {
      const link = await (LINKS[type] as (service: TestService) => Promise<Link>)(service)
      const answer = await way(link)
      expect(answer.status).toBe(status)
      if (status === 200) expect(answer.body).toMatchObject({ type, user: { email: link.email.toLowerCase() } })
      else expect(fragmentOf(answer)).toMatchObject({ type })
      for (const again of [byHash, byCode]) {
        expect(await again(link)).toMatchObject({ status: 403, body: { error_code: 'otp_expired' } })
      }
      expect(fragmentOf(await follow(service, link))).toMatchObject({
        error: 'access_denied',
        error_code: 'otp_expired',
      })
    }
  })

  simple.for([
    ['signup', 'signup'],
    ['invite', 'signup'],
    ['recovery', 'magiclink'],
    ['magiclink', 'magiclink'],
  ])('of %s goes by type email too, and is called %s then', async ([kind, type], { service }) => {
    const make = LINKS[kind as string] as (service: TestService) => Promise<Link>
    const hash = await service.post('/verify', { type: 'email', token_hash: (await make(service)).hashed_token })
    const { email, email_otp: token } = await make(service)
    const code = await service.post('/verify', { type: 'email', email, token })
    expect([hash.body.type, code.body.type]).toEqual([type, type])
    const { action_link } = await make(service)
    const followed = await follow(service, { action_link: action_link.replace(/type=\w+/, 'type=email') })
    expect(fragmentOf(followed)).toMatchObject({ type })
  })

  simple.for([
    ['signup', 'recovery'],
    ['recovery', 'signup'],
    ['email_change', 'magiclink'],
  ])('a token of %s is nothing as %s, and is not spent by that', async ([kind, type], { service }) => {
    const link = await (LINKS[kind as string] as (service: TestService) => Promise<Link>)(service)
    expect(await service.post('/verify', { type, token_hash: link.hashed_token })).toMatchObject({ status: 403 })
    expect(await service.post('/verify', { type, email: link.email, token: link.email_otp })).toMatchObject({
      status: 403,
    })
    expect((await service.post('/verify', { type: kind, token_hash: link.hashed_token })).status).toBe(200)
  })

  // A sign-up's proves an address its account never had: ../addresses.test.ts.
  simple.for(KINDS.filter((type) => type !== 'signup'))(
    'of a banned user: %s says so, even when it has expired, and works after the ban',
    async (type, { service }) => {
      const make = LINKS[type] as (service: TestService) => Promise<Link>
      const [link, old] = [await make(service), await make(service)]
      const seconds = 31 * 86_400
      const banned_until = new Date(service.clock.now().getTime() + seconds * 1000)
      await service.deps.db.updateTable('users').set({ banned_until }).execute()
      const banned = { error: 'access_denied', error_code: 'user_banned' }
      expect(fragmentOf(await follow(service, link))).toMatchObject(banned)
      expect(await service.post('/verify', { type, token_hash: link.hashed_token })).toMatchObject({
        status: 403,
        body: { error_code: 'user_banned' },
      })
      await service.deps.db
        .updateTable('one_time_tokens')
        .set({ expires_at: service.clock.now() })
        .where('token_hash', '=', createHash('sha256').update(old.hashed_token).digest())
        .execute()
      expect(fragmentOf(await follow(service, old))).toMatchObject(banned)
      await service.deps.db.updateTable('users').set({ banned_until: null }).execute()
      expect(fragmentOf(await follow(service, link))).toHaveProperty('access_token')
    },
  )
})

describe('wrong, expired and unknown get one answer', () => {
  test.for(['signup', 'invite', 'recovery', 'magiclink', 'email_change', 'email'])(
    'as a code of type %s',
    async (type, { service }) => {
      const kind = type === 'email' ? 'signup' : type
      const { email, email_otp: token } = await (LINKS[kind] as (service: TestService) => Promise<Link>)(service)
      const verify = (body: object) => service.post('/verify', { type, ...body })
      const wrong = await verify({ email, token: token === '000000' ? '111111' : '000000' })
      const unknown = await verify({ email: 'nobody@example.com', token })
      service.clock.advance({ seconds: 8 * 86_400 })
      const expired = await verify({ email, token })
      expect(wrong).toMatchObject({ status: 403, body: { error_code: 'otp_expired' } })
      expect([unknown.text, expired.text]).toEqual([wrong.text, wrong.text])
    },
  )

  test('as a code to a number, at sign-up, at sign-in and for a change', async ({ service: shared }) => {
    const service = await shared.with(PHONES)
    const sms = { type: 'sms', phone: '4915100000001' }
    await service.post('/signup', { phone: sms.phone, password })
    const wrong = await service.post('/verify', { ...sms, token: '999999' })
    const { body } = await service.post('/verify', { ...sms, token: '111111' })
    const auth = { authorization: `Bearer ${body.access_token}` }
    await service.put('/user', { phone: '4915100000002' }, auth)
    const change = { type: 'phone_change', phone: '4915100000002' }
    const answers = [wrong, await service.post('/verify', { ...change, token: '999999' })]
    // Not the type it was sent for.
    answers.push(await service.post('/verify', { ...change, type: 'sms', token: '222222' }))
    service.clock.advance({ seconds: 601 })
    answers.push(await service.post('/verify', { ...change, token: '222222' }))
    for (const { status, text } of answers) expect([status, text]).toEqual([403, wrong.text])
    expect(wrong.body.error_code).toBe('otp_expired')
    await service.close()
  })
})

describe('an invited user', () => {
  test('by a link of type signup is refused in the redirect, and not spent: as invite it works, without a password', async ({
    service,
  }) => {
    const link = await (LINKS.invite as (service: TestService) => Promise<Link>)(service)
    const asSignup = { action_link: link.action_link.replace('type=invite', 'type=signup') }
    expect(fragmentOf(await follow(service, asSignup))).toMatchObject({
      error: 'invalid_request',
      error_code: 'validation_failed',
    })
    expect(fragmentOf(await follow(service, link))).toMatchObject({ type: 'invite' })
  })

  test('may choose a password as they accept, without a notification of a change', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_MAILER_NOTIFICATIONS_PASSWORD_CHANGED_ENABLED: 'true' })
    const { email, hashed_token } = await (LINKS.invite as (service: TestService) => Promise<Link>)(service)
    const verified = await service.post('/verify', { type: 'invite', token_hash: hashed_token, password })
    expect(verified).toMatchObject({ status: 200, body: { type: 'invite' } })
    expect((await service.post('/token?grant_type=password', { email, password })).status).toBe(200)
    const sent = await service.get(`/admin/messages?user_id=${verified.body.user.id}`, service.admin)
    expect(sent).toMatchObject({ status: 200, body: { messages: [] } })
    await service.close()
  })
})

describe('the redirect', () => {
  const recovery = LINKS.recovery as (service: TestService) => Promise<Link>

  test('of a session has its keys sorted, in a fragment appended as it is', async ({ service }) => {
    for (const target of ['https://site.example/?a=b', 'https://site.example/#/app']) {
      const { headers } = await follow(service, await recovery(service), target)
      const [, parameters = ''] = String(headers.location).split(`${target}#`)
      expect([...new URLSearchParams(parameters).keys()]).toEqual([
        'access_token',
        'expires_at',
        'expires_in',
        'refresh_token',
        'sb',
        'token_type',
        'type',
      ])
    }
  })

  // contract/auth-core.md 18, BUG10.
  test('of an error replaces the fragment and leaves the query alone; spaces are encoded once', async ({ service }) => {
    const answer = await follow(
      service,
      { action_link: 'https://x/verify?token=x&type=signup' },
      'https://site.example/a?error=mine&x=%2B#/old',
    )
    expect([answer.status, answer.headers.location]).toEqual([
      303,
      'https://site.example/a?error=mine&x=%2B#error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid+or+has+expired&sb=',
    ])
  })

  test('of an error in the PKCE flow overrides what the query has of the same names, and keeps the rest', async ({
    service,
  }) => {
    const answer = await follow(
      service,
      { action_link: 'https://x/verify?token=pkce_x&type=signup' },
      'https://site.example/a?error=mine&keep=%2B&error_code=mine#/old',
    )
    const told = 'error=access_denied&error_code=otp_expired&error_description=Email+link+is+invalid+or+has+expired'
    expect(answer.headers.location).toBe(`https://site.example/a?keep=%2B&${told}#${told}&sb=`)
  })

  test('of an error whose status has no name in OAuth has no `error`, but its code', async ({ service }) => {
    const taken = freshEmail()
    const { action_link } = await forKnown(service, 'email_change_new', { new_email: taken })
    await service.deps.db
      .updateTable('users')
      .set({ email_change_confirm_status: 1 })
      .where('email_change', '=', taken)
      .execute()
    await service.post('/admin/users', { email: taken }, service.admin)
    const fragment = fragmentOf(await follow(service, { action_link }))
    expect(fragment).toMatchObject({ error_code: 'email_exists', sb: '' })
    expect(fragment).not.toHaveProperty('error')
  })

  // contract/auth-core.md 18, BUG10.
  test('of an unexpected failure says that it is ours, and nothing of its cause', async ({ service }) => {
    const link = await recovery(service)
    const { newRowId } = service.deps
    service.deps.newRowId = () => 'not-a-uuid'
    const answer = await follow(service, link)
    service.deps.newRowId = newRowId
    expect(fragmentOf(answer)).toEqual({
      error: 'server_error',
      error_code: 'unexpected_failure',
      error_description: 'Something went wrong on our side',
      sb: '',
    })
  })

  test('of a code is added to the query, in place of an older one, before a fragment', async ({ service }) => {
    const email = freshEmail()
    await service.post('/signup', { email, password, ...PKCE })
    const { text } = await service.mailbox.waitFor(email)
    const token = /token=(pkce_[\w-]+)/.exec(text)?.[1]
    const answer = await follow(
      service,
      { action_link: `https://x/verify?token=${token}&type=email` },
      'https://site.example/a?code=old&keep=1#/app',
    )
    expect(answer.headers.location).toMatch(/^https:\/\/site\.example\/a\?keep=1&code=[\w-]+#\/app$/)
    // The effective type, not the one of the request, is what the session remembers.
    const exchange = { auth_code: queryOf(answer).code, code_verifier: VERIFIER }
    const { body } = await service.post('/token?grant_type=pkce', exchange)
    const claims = await service.deps.keys.verify(body.access_token, service.clock.now())
    expect(claims?.amr).toMatchObject([{ method: 'email/signup' }])
  })
})

describe('a change of address', () => {
  const order = async (service: TestService, settings: object = {}) => {
    const [from, to] = [freshEmail(), freshEmail()]
    const { auth, userId } = await service.signedIn(from)
    const first = service.mailbox.messages({ to: from })[0]
    expect((await service.put('/user', { email: to, ...settings }, auth)).status).toBe(200)
    const current = await service.mailbox.waitFor(from, first ? { after: first } : {})
    const next = await service.mailbox.waitFor(to)
    const code = ({ text }: { text: string }) => /code: (\d+)/.exec(text)?.[1] as string
    const row = () =>
      service.deps.db
        .selectFrom('users')
        .select(['email', 'email_change', 'email_change_confirm_status', 'email_confirmed_at', 'email_change_sent_at'])
        .where('id', '=', userId)
        .executeTakeFirstOrThrow()
    return { from, to, current: code(current), next: code(next), row }
  }

  test('counts its confirmations, and keeps the time of the first proof', async ({ service }) => {
    const { from, to, current, next, row } = await order(service)
    const before = await row()
    expect(before).toMatchObject({ email: from, email_change: to, email_change_confirm_status: 0 })
    service.clock.advance({ seconds: 60 })
    const half = await service.post('/verify', { type: 'email_change', email: from, token: current })
    expect(half.body).not.toHaveProperty('access_token')
    expect(await row()).toMatchObject({ email: from, email_change_confirm_status: 1 })
    await service.post('/verify', { type: 'email_change', email: to, token: next })
    expect(await row()).toEqual({ ...before, email: to, email_change: null })
  })

  // contract/auth-core.md 18, BUG9.
  test('begun in the PKCE flow takes one code once, whichever comes first', async ({ service }) => {
    for (const isCurrentFirst of [true, false]) {
      const { from, to, current, next, row } = await order(service, PKCE)
      const halves = [
        { email: from, token: current },
        { email: to, token: next },
      ]
      const [first, second] = isCurrentFirst ? halves : halves.toReversed()
      const verify = (body: object | undefined) => service.post('/verify', { type: 'email_change', ...body })
      expect(await verify(first)).toMatchObject({ status: 200, body: { code: '200' } })
      expect(await verify(first)).toMatchObject({ status: 403, body: { error_code: 'otp_expired' } })
      expect(await row()).toMatchObject({ email: from, email_change_confirm_status: 1 })
      expect(await verify(second)).toMatchObject({ status: 200, body: { user: { email: to } } })
    }
  })
})

// contract/auth-core.md 18, BUG3.
test('a used link or code ends every other one of its user, for e-mail and phone', async ({ service }) => {
  const email = freshEmail()
  const next = freshEmail()
  await service.post('/admin/users', { email, password, email_confirm: true }, service.admin)
  const change = await generate(service, { type: 'email_change_new', email, new_email: next })
  const magic = await generate(service, { type: 'magiclink', email })
  expect((await service.post('/verify', { type: 'magiclink', token_hash: magic.hashed_token })).status).toBe(200)
  for (const body of [{ token_hash: change.hashed_token }, { email: next, token: change.email_otp }]) {
    expect((await service.post('/verify', { type: 'email_change', ...body })).status).toBe(403)
  }
})
