import { createSecretKey } from 'node:crypto'
import { describe, expect } from 'vitest'
import { type SignedIn, type TestService, test, toSignedIn } from '../../../test/service.ts'
import { formatRefreshToken, parseRefreshToken, type RefreshToken } from '../../core/sessions/refresh-token.ts'

const password = 'correct horse'

describe('refreshing', () => {
  const refresh = (service: TestService, token: string, headers = {}) =>
    service.post('/token?grant_type=refresh_token', { refresh_token: token }, headers)
  /** A late repeat by the client that has the successor is no attack: repeated-refresh.test.ts. */
  const elsewhere = { 'user-agent': 'Elsewhere/1.0' }

  test('a chain of refreshes works, and the session has one row all the while', async ({ service }) => {
    let { refreshToken, userId } = await service.signedIn()
    for (let i = 0; i < 5; i++) {
      const { status, body } = await refresh(service, refreshToken)
      expect(status).toBe(200)
      expect(body.refresh_token).not.toBe(refreshToken)
      refreshToken = body.refresh_token
      service.clock.advance({ seconds: 60 })
    }
    const sessions = await service.deps.db.selectFrom('sessions').selectAll().where('user_id', '=', userId).execute()
    expect(sessions.map((session) => session.refresh_counter)).toEqual([5])
  })

  // contract/auth-core.md 18, BUG4.
  test('concurrent refreshes each get the answer of their own session, the refused ones too', async ({ service }) => {
    const people = []
    for (let number = 0; number < 8; number++) people.push(await service.signedIn())
    const [leaving, reused] = people as [SignedIn, SignedIn]
    await service.post('/logout', {}, leaving.auth)
    await refresh(service, reused.refreshToken)
    await refresh(service, (await refresh(service, reused.refreshToken)).body.refresh_token)
    service.clock.advance({ seconds: 60 })
    const answers = await Promise.all(people.map(({ refreshToken }) => refresh(service, refreshToken)))
    expect(answers.map(({ body }) => body.user?.id ?? body.error_code)).toEqual([
      'refresh_token_not_found',
      'refresh_token_already_used',
      ...people.slice(2).map(({ userId }) => userId),
    ])
    const again = await Promise.all(answers.slice(2).map(({ body }) => refresh(service, body.refresh_token)))
    expect(again.map(({ body }) => body.user.id)).toEqual(people.slice(2).map(({ userId }) => userId))
  })

  test('a session that is locked elsewhere delays no other', async ({ service }) => {
    const [held, free] = [await service.signedIn(), await service.signedIn()]
    const holder = await service.deps.pool.connect()
    await holder.query('begin')
    await holder.query('select from sessions where user_id = $1 for update', [held.userId])
    let isHeld = true
    const waiting = refresh(service, held.refreshToken).then((answer) => ({ answer, wasHeld: isHeld }))
    expect((await refresh(service, free.refreshToken)).body.user.id).toBe(free.userId)
    isHeld = false
    await holder.query('commit')
    holder.release()
    expect(await waiting).toMatchObject({ wasHeld: false, answer: { status: 200 } })
  })

  test('twenty refreshes of one token at once get the same child', async ({ service }) => {
    const { refreshToken } = await service.signedIn()
    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(service, refreshToken)))
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]))
    expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
  })

  test('the previous token gives any client the current one again within the interval, however often', async ({
    service,
  }) => {
    const { refreshToken } = await service.signedIn()
    const child = (await refresh(service, refreshToken)).body.refresh_token
    for (let i = 0; i < 3; i++) {
      service.clock.advance({ seconds: 3 })
      expect((await refresh(service, refreshToken, elsewhere)).body.refresh_token).toBe(child)
    }
    // Reuse does not prolong the interval.
    service.clock.advance({ seconds: 2 })
    expect((await refresh(service, refreshToken, elsewhere)).body.error_code).toBe('refresh_token_already_used')
  })

  test('a token used elsewhere after the interval ends the whole session', async ({ service }) => {
    const { refreshToken } = await service.signedIn()
    const child = (await refresh(service, refreshToken)).body.refresh_token
    service.clock.advance({ seconds: 11 })
    expect(await refresh(service, refreshToken, elsewhere)).toMatchObject({
      status: 400,
      body: { error_code: 'refresh_token_already_used' },
    })
    expect(await refresh(service, child)).toMatchObject({
      status: 400,
      body: { error_code: 'refresh_token_not_found' },
    })
  })

  test('a token two behind ends the session even within the interval', async ({ service }) => {
    const { refreshToken: first } = await service.signedIn()
    const second = (await refresh(service, first)).body.refresh_token
    const third = (await refresh(service, second)).body.refresh_token
    expect((await refresh(service, first)).body.error_code).toBe('refresh_token_already_used')
    expect((await refresh(service, third)).status).toBe(400)
    const audited = await service.deps.db.selectFrom('audit_log_entries').select('payload').execute()
    expect(audited.map(({ payload }) => payload.action)).toContain('token_reuse_detected')
  })

  test('without rotation a reused token is refused and the session lives', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_SECURITY_REFRESH_TOKEN_ROTATION_ENABLED: 'false' })
    const { refreshToken: first } = await service.signedIn()
    const second = (await refresh(service, first)).body.refresh_token
    expect((await refresh(service, first)).body.refresh_token).toBe(second)
    service.clock.advance({ seconds: 11 })
    expect((await refresh(service, first, elsewhere)).body.error_code).toBe('refresh_token_already_used')
    const third = (await refresh(service, second)).body.refresh_token
    // Two behind, and within the interval.
    expect((await refresh(service, first)).body.error_code).toBe('refresh_token_already_used')
    expect((await refresh(service, second)).body.refresh_token).toBe(third)
    expect((await refresh(service, third)).status).toBe(200)
    await service.close()
  })

  test('sessions end with their time box and with inactivity', async ({ service: shared }) => {
    const service = await shared.with({ AUTH_SESSIONS_TIMEBOX: '1h', AUTH_SESSIONS_INACTIVITY_TIMEOUT: '20m' })
    const active = await service.signedIn()
    const idle = await service.signedIn()
    let token = active.refreshToken
    for (let i = 0; i < 3; i++) {
      service.clock.advance({ seconds: 19 * 60 })
      token = (await refresh(service, token)).body.refresh_token
    }
    expect(await refresh(service, idle.refreshToken)).toMatchObject({
      status: 400,
      body: { error_code: 'session_expired' },
    })
    service.clock.advance({ seconds: 5 * 60 })
    expect(await refresh(service, token)).toMatchObject({ status: 400, body: { error_code: 'session_expired' } })
    await service.close()
  })

  describe('with one session per user', () => {
    const single = { AUTH_SESSIONS_SINGLE_PER_USER: 'true' }
    const replaced = {
      status: 400,
      body: { error_code: 'session_expired', msg: 'The session has ended with a newer sign-in, sign in again' },
    }
    const again = async (service: TestService, email: string) =>
      toSignedIn((await service.post('/token?grant_type=password', { email, password })).body)
    const later = (service: TestService, email: string) => {
      service.clock.advance({ seconds: 1 })
      return again(service, email)
    }

    test('only the newest is refreshed, however fresh an older one is, and others keep theirs', async ({
      service: shared,
    }) => {
      const service = await shared.with(single)
      for (const email of ['single-1@example.com', 'other-1@example.com']) await service.signedIn(email, password)
      const other = await later(service, 'other-1@example.com')
      const first = await later(service, 'single-1@example.com')
      const { refresh_token: fresh } = (await refresh(service, first.refreshToken)).body
      const newest = await later(service, 'single-1@example.com')
      expect(await refresh(service, fresh)).toMatchObject(replaced)
      const next = await refresh(service, newest.refreshToken)
      expect(next.status).toBe(200)
      expect(await refresh(service, fresh)).toMatchObject(replaced)
      expect((await refresh(service, next.body.refresh_token)).status).toBe(200)
      expect((await refresh(service, other.refreshToken)).status).toBe(200)
      await service.close()
    })

    test('an older one reads the account while its token lives, changes nothing and is not listed', async ({
      service: shared,
    }) => {
      const service = await shared.with(single)
      const first = await service.signedIn('single-2@example.com', password)
      const newest = await later(service, 'single-2@example.com')
      expect((await service.get('/user', first.auth)).status).toBe(200)
      expect(await service.put('/user', { data: { late: true } }, first.auth)).toMatchObject({
        status: 403,
        body: { error_code: 'session_not_found' },
      })
      expect((await service.get('/user/sessions', newest.auth)).body).toMatchObject([{ current: true }])
      expect((await service.put('/user', { data: { late: false } }, newest.auth)).status).toBe(200)
      await service.close()
    })

    test('the token of an admin, which has no session, is never replaced', async ({ service: shared }) => {
      const service = await shared.with(single)
      const { userId } = await service.signedIn('single-3@example.com', password)
      await later(service, 'single-3@example.com')
      const listed = await service.get(`/admin/users/${userId}/sessions`, service.admin)
      expect(listed).toMatchObject({ status: 200, body: [{}] })
      await service.close()
    })

    test.for<[string, (service: TestService, newest: SignedIn) => Promise<unknown>]>([
      ['signs out', (service, { auth }) => service.post('/logout?scope=local', {}, auth)],
      [
        'is ended by its user',
        async (service, { auth }) => {
          const { body } = await service.get('/user/sessions', auth)
          return service.delete(`/user/sessions/${body[0].id}`, auth)
        },
      ],
      [
        'is ended by an admin',
        async (service, { userId, auth }) => {
          const { body } = await service.get('/user/sessions', auth)
          return service.delete(`/admin/users/${userId}/sessions/${body[0].id}`, service.admin)
        },
      ],
      [
        'is ended by the reuse of its token',
        async (service, { refreshToken }) => {
          await refresh(service, refreshToken)
          service.clock.advance({ seconds: 11 })
          return refresh(service, refreshToken, elsewhere)
        },
      ],
    ])('an older one stays ended when the newer one %s', async ([, end], { service: shared }) => {
      const service = await shared.with(single)
      const other = await service.signedIn('other@example.com', password)
      const first = await service.signedIn('single-4@example.com', password)
      const newest = await later(service, 'single-4@example.com')
      await end(service, newest)
      for (const { refreshToken } of [first, newest]) expect((await refresh(service, refreshToken)).status).toBe(400)
      expect((await service.put('/user', { data: { alive: true } }, first.auth)).status).toBe(403)
      expect((await refresh(service, other.refreshToken)).status).toBe(200)
      await service.close()
    })

    test('of sign-ins in the same moment exactly one is left', async ({ service: shared }) => {
      const service = await shared.with(single)
      await service.signedIn('single@example.com')
      service.clock.advance({ seconds: 1 })
      const all = await Promise.all(Array.from({ length: 8 }, () => again(service, 'single@example.com')))
      const statuses = await Promise.all(all.map(async (one) => (await refresh(service, one.refreshToken)).status))
      expect(statuses.toSorted()).toEqual([200, ...Array(7).fill(400)])
      await service.close()
    })
  })

  test('a banned user cannot refresh until the ban ends', async ({ service }) => {
    const { refreshToken, userId } = await service.signedIn()
    const bannedUntil = new Date(service.clock.now().getTime() + 60_000)
    await service.deps.db.updateTable('users').set({ banned_until: bannedUntil }).where('id', '=', userId).execute()
    expect(await refresh(service, refreshToken)).toMatchObject({ status: 400, body: { error_code: 'user_banned' } })
    service.clock.advance({ seconds: 61 })
    expect((await refresh(service, refreshToken)).status).toBe(200)
  })

  describe('after the database lost refreshes, in a failover or by a restore', () => {
    /** A session whose token is `refreshes` ahead of its row. */
    async function setBack(service: TestService, refreshes: number, signedIn?: SignedIn) {
      const { userId, refreshToken, auth } = signedIn ?? (await service.signedIn())
      const tokens = [refreshToken]
      for (let i = 0; i < refreshes; i++) {
        tokens.push((await refresh(service, tokens.at(-1) as string)).body.refresh_token)
      }
      const rows = () => service.deps.db.selectFrom('sessions').selectAll().where('user_id', '=', userId).execute()
      await service.deps.db.updateTable('sessions').set({ refresh_counter: 0 }).where('user_id', '=', userId).execute()
      return { userId, auth, tokens, newest: tokens.at(-1) as string, rows }
    }
    const actionsOf = async (service: TestService, userId: string) => {
      const entries = await service.deps.db.selectFrom('audit_log_entries').select('payload').execute()
      return entries.map(({ payload }) => payload).filter(({ actor_id }) => actor_id === userId)
    }

    test('the newest token still works, the session counts from there, and the log says so', async ({ service }) => {
      const { newest, rows, userId } = await setBack(service, 4)
      const { status, body } = await refresh(service, newest)
      expect(status).toBe(200)
      expect(await rows()).toMatchObject([{ refresh_counter: 5 }])
      expect((await refresh(service, body.refresh_token)).status).toBe(200)
      const recovered = (await actionsOf(service, userId)).filter(({ action }) => action === 'token_recovered')
      expect(recovered).toMatchObject([{ log_type: 'token', traits: { session_id: (await rows())[0]?.id } }])
    })

    test('ten refreshes of it at once get the same child', async ({ service }) => {
      const { newest, rows } = await setBack(service, 3)
      const answers = await Promise.all(Array.from({ length: 10 }, () => refresh(service, newest)))
      expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
      expect(new Set(answers.map(({ body }) => body.refresh_token)).size).toBe(1)
      expect(await rows()).toMatchObject([{ refresh_counter: 4 }])
    })

    test('one that is overtaken by another while its refusal is judged gets the same child, too', async ({
      service,
    }) => {
      const { newest } = await setBack(service, 3)
      const { rotateSession } = service.deps
      let overtaking: Awaited<ReturnType<typeof refresh>> | undefined
      service.deps.rotateSession = async (rotation) => {
        const refused = await rotateSession(rotation)
        service.deps.rotateSession = rotateSession
        overtaking = await refresh(service, newest)
        return refused
      }
      const overtaken = await refresh(service, newest)
      expect([overtaken.status, overtaking?.status]).toEqual([200, 200])
      expect(overtaken.body.refresh_token).toBe(overtaking?.body.refresh_token)
      expect((await refresh(service, overtaken.body.refresh_token)).status).toBe(200)
    })

    test('an older one used after it ends the session, and so does the newest after an older one went past it', async ({
      service,
    }) => {
      const owner = await setBack(service, 4)
      const { body } = await refresh(service, owner.newest)
      expect((await refresh(service, owner.tokens[2] as string)).body.error_code).toBe('refresh_token_already_used')
      expect((await refresh(service, body.refresh_token)).body.error_code).toBe('refresh_token_not_found')

      const robbed = await setBack(service, 2)
      let stolen = robbed.tokens[1] as string
      for (let i = 0; i < 3; i++) stolen = (await refresh(service, stolen)).body.refresh_token
      expect((await refresh(service, robbed.newest)).body.error_code).toBe('refresh_token_already_used')
      expect((await refresh(service, stolen)).body.error_code).toBe('refresh_token_not_found')
    })

    test('a session that has ended, or whose user is banned, stays so and does not move', async ({ service }) => {
      const ended = await setBack(service, 2)
      await service.post('/logout', {}, ended.auth)
      expect((await refresh(service, ended.newest)).body.error_code).toBe('refresh_token_not_found')

      const banned = await setBack(service, 2)
      const bannedUntil = new Date(service.clock.now().getTime() + 60_000)
      const { db } = service.deps
      await db.updateTable('users').set({ banned_until: bannedUntil }).where('id', '=', banned.userId).execute()
      expect((await refresh(service, banned.newest)).body.error_code).toBe('user_banned')
      expect(await banned.rows()).toMatchObject([{ refresh_counter: 0 }])
    })

    test('the newest token works however long the database thinks its session inactive, an older one does not', async ({
      service: shared,
    }) => {
      const service = await shared.with({ AUTH_SESSIONS_INACTIVITY_TIMEOUT: '1h' })
      const [active, idle] = [await setBack(service, 2), await setBack(service, 0)]
      service.clock.advance({ seconds: 3_601 })
      const { status, body } = await refresh(service, active.newest)
      expect(status).toBe(200)
      expect(await active.rows()).toMatchObject([{ refresh_counter: 3, refreshed_at: service.clock.now() }])
      expect((await refresh(service, idle.newest)).body.error_code).toBe('session_expired')
      service.clock.advance({ seconds: 3_601 })
      expect((await refresh(service, body.refresh_token)).body.error_code).toBe('session_expired')
      await service.close()
    })

    test('a session past its time box stays ended', async ({ service: shared }) => {
      const service = await shared.with({ AUTH_SESSIONS_TIMEBOX: '1h' })
      const { newest, rows } = await setBack(service, 2)
      service.clock.advance({ seconds: 3_601 })
      expect((await refresh(service, newest)).body.error_code).toBe('session_expired')
      expect(await rows()).toMatchObject([{ refresh_counter: 0 }])
      await service.close()
    })
  })

  test('tokens that this service did not make are refused and end nothing', async ({ service }) => {
    const { refreshToken } = await service.signedIn()
    const parsed = parseRefreshToken(service.deps.refreshTokenKey, refreshToken) as RefreshToken
    const otherKey = createSecretKey(Buffer.alloc(32, 7))
    const cases: [string, string][] = [
      ['', 'validation_failed'],
      ['abcdefghijkl', 'refresh_token_not_found'],
      [`${refreshToken}x`, 'refresh_token_not_found'],
      [`B${refreshToken.slice(1)}`, 'refresh_token_not_found'],
      [refreshToken.slice(0, -3) + (refreshToken.endsWith('AAA') ? 'BBA' : 'AAA'), 'refresh_token_not_found'],
      [formatRefreshToken(otherKey, parsed), 'refresh_token_not_found'],
      ...spellingsOf(refreshToken).map((token): [string, string] => [token, 'refresh_token_not_found']),
    ]
    for (const [token, code] of cases) {
      expect(await refresh(service, token)).toMatchObject({ status: 400, body: { error_code: code } })
    }
    expect((await refresh(service, refreshToken)).status).toBe(200)
  })
})

test('a refreshed session speaks for the same user', async ({ service }) => {
  const { refreshToken, userId } = await service.signedIn()
  const { body } = await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
  const { auth } = toSignedIn(body)
  expect((await service.get('/user', auth)).body.id).toBe(userId)
  expect(body.user.identities).toHaveLength(1)
})

/** The same bytes in other letters: the last of 55 characters of base64url has two bits to spare. */
function spellingsOf(token: string): string[] {
  const bytes = Buffer.from(token, 'base64url')
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
  const spellings = [...letters].map((letter) => token.slice(0, -1) + letter)
  return spellings.filter((other) => other !== token && Buffer.from(other, 'base64url').equals(bytes))
}
