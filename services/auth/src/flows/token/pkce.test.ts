import { createHash, randomBytes } from 'node:crypto'
import { describe, expect } from 'vitest'
import { fragmentOf, linkPath, queryOf, type TestService, test, tokenIn } from '../../../test/service.ts'

const password = 'correct horse'

function challenge() {
  const verifier = randomBytes(32).toString('base64url')
  const code_challenge = createHash('sha256').update(verifier).digest('base64url')
  return { verifier, pkce: { code_challenge, code_challenge_method: 's256' } }
}

const exchange = (service: TestService, auth_code: string, code_verifier: string) =>
  service.post('/token?grant_type=pkce', { auth_code, code_verifier })

const amrOf = (body: { access_token: string }) =>
  JSON.parse(Buffer.from(body.access_token.split('.')[1] as string, 'base64url').toString()).amr[0].method

/** Asks for a mail with a challenge, follows its link and returns the code the browser is sent back with. */
async function followed(service: TestService, email: string, ask: (pkce: object) => Promise<unknown>) {
  const { verifier, pkce } = challenge()
  const [before] = service.mailbox.messages({ to: email })
  await ask(pkce)
  const mail = await service.mailbox.waitFor(email, before ? { after: before } : {})
  expect(tokenIn(mail.text)).toMatch(/^pkce_/)
  const answer = await service.get(linkPath(mail.text))
  expect([answer.status, String(answer.headers.location).includes('#')]).toEqual([303, false])
  return { code: queryOf(answer).code as string, verifier }
}

describe('a link asked for with a code challenge', () => {
  test.for<[string, string]>([
    ['sign-up', 'email/signup'],
    ['sign-in', 'magiclink'],
    ['recovery', 'recovery'],
  ])('of %s gives a code, which with its verifier gives a session', async ([kind, method], { service }) => {
    const email = `pkce-${kind}@example.com`
    const ask = {
      'sign-up': (pkce: object) => service.post('/signup', { email, password, ...pkce }),
      'sign-in': (pkce: object) => service.post('/otp', { email, ...pkce }),
      recovery: (pkce: object) => service.post('/recover', { email, ...pkce }),
    }[kind] as (pkce: object) => Promise<unknown>
    if (kind !== 'sign-up') await service.signedIn(email)
    const { code, verifier } = await followed(service, email, ask)
    const { status, body } = await exchange(service, code, verifier)
    expect([status, body.user?.email, amrOf(body)]).toEqual([200, email, method])
    expect(await exchange(service, code, verifier)).toMatchObject({
      status: 404,
      body: { error_code: 'flow_state_not_found' },
    })
  })

  test('answers errors in the query and in the fragment', async ({ service }) => {
    const { pkce } = challenge()
    await service.post('/signup?redirect_to=https://site.example/app?error=mine%26keep=1', {
      email: 'pkce-error@example.com',
      password,
      ...pkce,
    })
    const mail = await service.mailbox.waitFor('pkce-error@example.com')
    service.clock.advance({ seconds: 3601 })
    const answer = await service.get(linkPath(mail.text))
    expect(queryOf(answer)).toMatchObject({ keep: '1', error: 'access_denied', error_code: 'otp_expired' })
    expect(fragmentOf(answer)).toMatchObject({ error: 'access_denied', error_code: 'otp_expired', sb: '' })
  })

  // contract/auth-core.md 18, BUG6.
  test('may be clicked long after it was asked for: the code lives from the click', async ({ service }) => {
    const { verifier, pkce } = challenge()
    await service.post('/signup', { email: 'slow@example.com', password, ...pkce })
    const mail = await service.mailbox.waitFor('slow@example.com')
    service.clock.advance({ seconds: 3000 })
    const { code } = queryOf(await service.get(linkPath(mail.text)))
    service.clock.advance({ seconds: 299 })
    expect((await exchange(service, code as string, verifier)).status).toBe(200)
  })

  test('as token_hash of the application gives a session at once', async ({ service }) => {
    const { pkce } = challenge()
    await service.post('/signup', { email: 'hash-pkce@example.com', password, ...pkce })
    const mail = await service.mailbox.waitFor('hash-pkce@example.com')
    expect(await service.post('/verify', { type: 'email', token_hash: tokenIn(mail.text) })).toMatchObject({
      status: 200,
      body: { type: 'signup' },
    })
  })

  test('a change of address needs both, and says so in query and fragment', async ({ service }) => {
    const { auth } = await service.signedUp('pkce-from@example.com')
    const { verifier, pkce } = challenge()
    const first = await service.mailbox.waitFor('pkce-from@example.com')
    await service.put('/user', { email: 'pkce-to@example.com', ...pkce }, auth)
    const current = await service.mailbox.waitFor('pkce-from@example.com', { after: first })
    const next = await service.mailbox.waitFor('pkce-to@example.com')
    const half = await service.get(linkPath(current.text))
    expect(queryOf(half).message).toBe(fragmentOf(half).message)
    const { code } = queryOf(await service.get(linkPath(next.text)))
    const { body } = await exchange(service, code as string, verifier)
    expect([body.user.email, amrOf(body)]).toEqual(['pkce-to@example.com', 'email_change'])
  })
})

describe("a stranger's challenge", () => {
  type Asked = (email: string, pkce: object, headers?: Record<string, string>) => Promise<{ status: number }>
  const DOORS: Record<string, (service: TestService) => Asked> = {
    '/recover': (service) => (email, pkce, headers) => service.post('/recover', { email, ...pkce }, headers),
    '/otp': (service) => (email, pkce, headers) => service.post('/otp', { email, ...pkce }, headers),
    '/magiclink': (service) => (email, pkce, headers) => service.post('/magiclink', { email, ...pkce }, headers),
    '/signup': (service) => (email, pkce, headers) => service.post('/signup', { email, password, ...pkce }, headers),
    '/resend': (service) => (email, pkce, headers) =>
      service.post('/resend', { type: 'signup', email, ...pkce }, headers),
  }
  const from = (address: string) => ({ 'x-real-ip': address })
  const OWNER = from('192.0.2.1')
  const STRANGER = from('203.0.113.9')

  /**
   * A service that knows its clients' addresses, and an account for the door: one that waits for /signup and /resend.
   */
  async function prepared(plain: TestService, door: string, name: string) {
    const service = await plain.with({ AUTH_RATE_LIMIT_HEADER: 'X-Real-IP' })
    const email = `${name}-${door.slice(1)}@example.com`
    if (door === '/resend') {
      await service.post('/signup', { email, password }, from('192.0.2.77'))
      await service.mailbox.waitFor(email)
      service.clock.advance({ seconds: 901 })
    } else if (door !== '/signup') await service.signedIn(email)
    const ask = (DOORS[door] as (typeof DOORS)['/otp'])(service)
    const asked = async (pkce: object, headers: Record<string, string>) => {
      const [before] = service.mailbox.messages({ to: email })
      expect((await ask(email, pkce, headers)).status).toBe(200)
      return linkPath((await service.mailbox.waitFor(email, before ? { after: before } : {})).text)
    }
    const opens = async (path: string, verifier: string) => {
      const { code } = queryOf(await service.get(path))
      return (await exchange(service, String(code), verifier)).status
    }
    return { service, email, asked, opens }
  }

  test.for(Object.keys(DOORS))(
    "at %s holds back no request of the owner's, and spoils no link of theirs, asked before or after",
    async (door, { service: plain }) => {
      const { service, asked, opens } = await prepared(plain, door, 'challenged')
      const [first, stranger, second] = [challenge(), challenge(), challenge()]
      const early = await asked(first.pkce, OWNER)
      const spoilt = await asked(stranger.pkce, STRANGER)
      expect(await opens(spoilt, first.verifier)).toBe(400)
      expect(await opens(early, first.verifier)).toBe(200)
      if (door === '/signup' || door === '/resend') return service.close()
      service.clock.advance({ seconds: 61 })
      await asked(stranger.pkce, STRANGER)
      const late = await asked(second.pkce, OWNER)
      expect(await opens(late, second.verifier)).toBe(200)
      await service.close()
    },
  )

  test('leaves a link good that was asked for without one, and the other way round', async ({ service: plain }) => {
    const { service, email, asked, opens } = await prepared(plain, '/otp', 'mixed')
    const { verifier, pkce } = challenge()
    const implicit = await asked({}, OWNER)
    await asked(challenge().pkce, STRANGER)
    expect((await service.get(implicit)).headers.location).toContain('#access_token=')
    service.clock.advance({ seconds: 61 })
    const bound = await asked(pkce, OWNER)
    await asked({}, STRANGER)
    expect(await opens(bound, verifier)).toBe(200)
    expect(service.mailbox.messages({ to: email })).toHaveLength(4)
    await service.close()
  })

  test('ends with a session: then no earlier link is valid', async ({ service: plain }) => {
    const { service, asked } = await prepared(plain, '/recover', 'ended')
    const early = await asked(challenge().pkce, OWNER)
    await asked(challenge().pkce, STRANGER)
    service.clock.advance({ seconds: 61 })
    const implicit = await asked({}, OWNER)
    expect((await service.get(implicit)).headers.location).toContain('#access_token=')
    expect(queryOf(await service.get(early)).error_code).toBe('otp_expired')
    const rows = await service.deps.db.selectFrom('earlier_links').selectAll().execute()
    expect(rows.filter(({ relates_to }) => relates_to.startsWith('ended'))).toEqual([])
    await service.close()
  })

  test.for<[string, () => object]>([
    ['without a challenge', () => ({})],
    ['with another challenge', () => challenge().pkce],
  ])(
    'ends with a session by code: a link asked for before, %s, is dead then',
    async ([what, first], { service: plain }) => {
      const { service, asked, opens } = await prepared(plain, '/recover', `exchanged-${what.replaceAll(' ', '-')}`)
      const early = await asked(first(), OWNER)
      const { verifier, pkce } = challenge()
      const late = await asked(pkce, STRANGER)
      expect(await opens(late, verifier)).toBe(200)
      const answer = await service.get(early)
      expect({ ...fragmentOf(answer), ...queryOf(answer) }.error_code).toBe('otp_expired')
      await service.close()
    },
  )

  test('keeps its own network waiting, as any request does', async ({ service: plain }) => {
    const { service, email, asked } = await prepared(plain, '/otp', 'spaced')
    await asked(challenge().pkce, STRANGER)
    const again = await service.post('/otp', { email, ...challenge().pkce }, STRANGER)
    expect(again).toMatchObject({ status: 429, body: { error_code: 'over_email_send_rate_limit' } })
    await service.close()
  })

  test('of a change of address sent again leaves the link of its user good', async ({ service }) => {
    const { auth } = await service.signedIn('change-from@example.com')
    const { verifier, pkce } = challenge()
    await service.put('/user', { email: 'change-to@example.com', ...pkce }, auth)
    const paths = []
    for (const address of ['change-from@example.com', 'change-to@example.com']) {
      paths.push(linkPath((await service.mailbox.waitFor(address)).text))
    }
    service.clock.advance({ seconds: 901 })
    const [before] = service.mailbox.messages({ to: 'change-to@example.com' })
    const again = { type: 'email_change', email: 'change-from@example.com', ...challenge().pkce }
    expect((await service.post('/resend', again)).status).toBe(200)
    await service.mailbox.waitFor('change-to@example.com', { after: before })
    let answer = await service.get(paths[0] as string)
    expect(queryOf(answer).message).toBeDefined()
    answer = await service.get(paths[1] as string)
    expect((await exchange(service, String(queryOf(answer).code), verifier)).status).toBe(200)
  })
})

describe('a code', () => {
  const signedUp = (service: TestService, email: string) =>
    followed(service, email, (pkce) => service.post('/signup', { email, password, ...pkce }))

  test('is refused with another verifier, and works after that with the right one', async ({ service }) => {
    const { code, verifier } = await signedUp(service, 'verifier@example.com')
    const wrong = await exchange(service, code, challenge().verifier)
    expect(wrong).toMatchObject({ status: 400, body: { error_code: 'bad_code_verifier' } })
    expect((await exchange(service, code, verifier)).status).toBe(200)
  })

  test('of twenty parallel exchanges exactly one gets a session', async ({ service }) => {
    const { code, verifier } = await signedUp(service, 'parallel-code@example.com')
    const answers = await Promise.all(Array.from({ length: 20 }, () => exchange(service, code, verifier)))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('expires after five minutes', async ({ service }) => {
    const { code, verifier } = await signedUp(service, 'expires@example.com')
    service.clock.advance({ seconds: 301 })
    expect(await exchange(service, code, verifier)).toMatchObject({
      status: 422,
      body: { error_code: 'flow_state_expired' },
    })
  })

  // Section 18: the exchange ignores bans.
  test('of a user banned meanwhile is refused', async ({ service }) => {
    const { code, verifier } = await signedUp(service, 'banned-code@example.com')
    const banned_until = new Date(service.clock.now().getTime() + 60_000)
    await service.deps.db
      .updateTable('users')
      .set({ banned_until })
      .where('email', '=', 'banned-code@example.com')
      .execute()
    expect(await exchange(service, code, verifier)).toMatchObject({ status: 400, body: { error_code: 'user_banned' } })
  })

  test('is worth nothing after a change of password', async ({ service }) => {
    const { auth } = await service.signedIn('stolen-code@example.com')
    const { code, verifier } = await followed(service, 'stolen-code@example.com', (pkce) =>
      service.post('/otp', { email: 'stolen-code@example.com', ...pkce }),
    )
    expect((await service.put('/user', { password: 'a new horse' }, auth)).status).toBe(200)
    expect((await exchange(service, code, verifier)).status).toBe(404)
  })

  test('that is unknown, or missing, is refused', async ({ service }) => {
    expect(await exchange(service, 'unknown', 'x')).toMatchObject({
      status: 404,
      body: { error_code: 'flow_state_not_found' },
    })
    expect(await exchange(service, '', 'x')).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
    expect(await exchange(service, 'x', '')).toMatchObject({ status: 400, body: { error_code: 'validation_failed' } })
  })
})

test('a plain challenge is its own verifier', async ({ service }) => {
  const verifier = 'v'.repeat(43)
  await service.post('/signup', {
    email: 'plain@example.com',
    password,
    code_challenge: verifier,
    code_challenge_method: 'Plain',
  })
  const mail = await service.mailbox.waitFor('plain@example.com')
  const { code } = queryOf(await service.get(linkPath(mail.text)))
  expect((await exchange(service, code as string, verifier)).status).toBe(200)
})
