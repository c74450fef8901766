import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { PATIENCE_MS } from '@services/common/testing/patience'
import { perFile } from '@services/common/testing/per-file'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { enrollTotp, withTotp } from '../test/second-factors.ts'
import { test as base, startTestService, type TestService, toSignedIn } from '../test/service.ts'
import { deleteExpired, startHousekeeping } from './housekeeping.ts'

/** `shared`: without a worker, for tests that ask after their own users alone. */
const test = base.extend<object & { shared: TestService }>({
  shared: perFile(() => startTestService({ AUTH_WORKERS_ENABLED: 'false' })),
})

/** Runs all kinds, also those that a process has run today. */
async function tidyUpAgain({ deps }: TestService): Promise<void> {
  await deps.db.deleteFrom('shared_runs').execute()
  await deleteExpired(deps, deps.log)
}

/** Signs a user in; `insert` gives them further sessions. */
async function withSessions(service: TestService) {
  const { auth, userId } = await service.signedIn()
  const daysAgo = (days: number) => new Date(service.clock.now().getTime() - days * 86_400_000)
  return {
    auth,
    insert: (ageDays: number, idleDays: number, count: number) =>
      service.deps.pool.query(
        `insert into sessions (id, user_id, amr, refreshed_at, created_at)
          select gen_random_uuid(), $1, '[]', $2, $3 from generate_series(1, $4)`,
        [userId, daysAgo(idleDays), daysAgo(ageDays), count],
      ),
    count: async () => (await service.deps.pool.query('select count(*) from sessions')).rows[0].count,
  }
}

test('an Apple secret is warned of from 14 days before its expiry on, once a day', async () => {
  const log = { warn: vi.fn() }
  const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  const day = 86_400
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const { deps, clock } = service
  const exp = Math.floor(clock.now().getTime() / 1000) + 15 * day
  const secret = `${encode({ alg: 'ES256' })}.${encode({ exp })}.c2lnbmF0dXJl`
  const apple = { ...deps.config.providers.apple, enabled: true, secret }
  const config = { ...deps.config, providers: { ...deps.config.providers, apple } }
  const runs = {}
  const round = () => deleteExpired({ ...deps, config }, log as unknown as typeof deps.log, runs)
  await round()
  expect(log.warn).not.toHaveBeenCalled()
  clock.advance({ seconds: 1.5 * day })
  for (let i = 0; i < 2; i++) await round()
  expect(log.warn.mock.calls).toEqual([
    [{ setting: 'AUTH_EXTERNAL_APPLE_SECRET expires in 13 day(s): sign a new one' }, 'setting expires soon'],
  ])
  clock.advance({ seconds: day })
  await round()
  expect(log.warn).toHaveBeenLastCalledWith(
    { setting: expect.stringContaining('in 12 day(s)') },
    'setting expires soon',
  )
  await service.close()
})

describe('idle sessions', () => {
  const DAY = 86_400
  const open = (settings: Record<string, string>) => startTestService({ AUTH_WORKERS_ENABLED: 'false', ...settings })
  const tidyUp = tidyUpAgain
  const refresh = (service: TestService, { refreshToken }: { refreshToken: string }) =>
    service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })
  const later = (service: TestService, days: number) => service.clock.advance({ seconds: days * DAY })

  test('are all deleted two days after an inactivity limit, among any number that stay', async () => {
    const service = await open({ AUTH_SESSIONS_INACTIVITY_TIMEOUT: '1h' })
    const { auth, insert, count } = await withSessions(service)
    await insert(30, 1, 2_000)
    await insert(20, 10, 1_500)
    expect(await count()).toBe(3_501)
    await tidyUp(service)
    expect(await count()).toBe(2_001)
    expect((await service.get('/user', auth)).status).toBe(200)
    await service.close()
  })

  test('are searched for once a day by one of two replicas, along an index', async () => {
    const service = await open({ AUTH_SESSIONS_KEEP_IDLE: '720h' })
    const { pool } = service.deps
    const { insert, count } = await withSessions(service)
    await insert(90, 1, 2_500)
    await insert(80, 40, 1)
    await pool.query('analyze sessions')
    const other = await service.with({})
    await deleteExpired(service.deps, service.deps.log)
    expect(await count()).toBe(2_501)
    await insert(80, 40, 1)
    service.clock.advance({ seconds: DAY - 1 })
    await deleteExpired(other.deps, other.deps.log)
    expect(await count()).toBe(2_502)
    service.clock.advance({ seconds: 1 })
    await deleteExpired(other.deps, other.deps.log)
    expect(await count()).toBe(2_501)
    const scans = `select idx_scan from pg_stat_user_indexes where indexrelname = 'sessions_created_at_idx'`
    await expect.poll(async () => (await pool.query(scans)).rows[0].idx_scan).toBeGreaterThan(0)
    await other.close()
    await service.close()
  })

  test('are forgotten after AUTH_SESSIONS_KEEP_IDLE and not before, unless they are refreshed', async ({ shared }) => {
    const service = await shared.with({ AUTH_SESSIONS_KEEP_IDLE: '240h' })
    const [idle, late, used] = [await service.signedIn(), await service.signedIn(), await service.signedIn()]
    later(service, 9)
    const next = toSignedIn((await refresh(service, used)).body)
    later(service, 1)
    await tidyUp(service)
    expect((await refresh(service, late)).status).toBe(200)
    service.clock.advance({ seconds: 1 })
    await tidyUp(service)
    const { status, body } = await refresh(service, { refreshToken: 'unknown' })
    expect(await refresh(service, idle)).toMatchObject({ status, body })
    expect((await refresh(service, next)).status).toBe(200)
    await service.close()
  })

  test('can be refreshed in the moment before they are deleted, however long they were idle', async ({ shared }) => {
    const service = await shared.with({ AUTH_SESSIONS_KEEP_IDLE: '24h' })
    const idle = await service.signedIn()
    later(service, 400)
    const back = await refresh(service, idle)
    expect(back.status).toBe(200)
    await tidyUp(service)
    expect((await refresh(service, toSignedIn(back.body))).status).toBe(200)
    await service.close()
  })

  test('stay for ever by default', async ({ shared }) => {
    const service = await shared.with({})
    const idle = await service.signedIn()
    later(service, 4_000)
    await tidyUp(service)
    expect((await refresh(service, idle)).status).toBe(200)
    await service.close()
  })

  test('do not revive, by their deletion, an older session that they have replaced', async () => {
    const service = await open({ AUTH_SESSIONS_KEEP_IDLE: '24h' })
    const older = await service.signedIn('twice@example.com')
    later(service, 1)
    await service.post('/token?grant_type=password', { email: 'twice@example.com', password: 'correct horse' })
    later(service, 1)
    // Refreshed after the newer sign-in, when both were still valid.
    const current = toSignedIn((await refresh(service, older)).body)
    const single = await service.with({ AUTH_SESSIONS_SINGLE_PER_USER: 'true' })
    service.clock.advance({ seconds: 1 })
    await tidyUp(single)
    expect((await refresh(single, current)).status).toBe(400)
    later(service, 2)
    await tidyUp(single)
    expect((await service.deps.pool.query('select from sessions')).rowCount).toBe(0)
    await single.close()
    await service.close()
  })

  test('of one user are all deleted at once where only the newest is valid, up to one in use', async () => {
    const service = await open({ AUTH_SESSIONS_KEEP_IDLE: '24h', AUTH_SESSIONS_SINGLE_PER_USER: 'true' })
    const { pool } = service.deps
    const { insert, count } = await withSessions(service)
    for (const ageDays of [50, 40]) await insert(ageDays, 10, 750)
    await insert(30, 0, 1)
    await insert(20, 10, 1)
    const client = await pool.connect()
    await client.query('begin')
    await client.query('select from sessions order by created_at, id limit 1 for update')
    await tidyUp(service)
    expect(await count()).toBe(1_503)
    await client.query('rollback')
    client.release()
    await tidyUp(service)
    // The new one, the one in use and the one that replaced it.
    expect(await count()).toBe(3)
    await service.close()
  })
})

test('a requested change of address is deleted two days after its link expires, a live one stays', async () => {
  const service = await startTestService()
  const old = await service.signedIn('old-wish@example.com')
  await service.put('/user', { email: 'wanted-then@example.com' }, old.auth)
  await service.mailbox.waitFor('wanted-then@example.com')
  // The current address gets one too, and a link lives from when its mail leaves.
  await expect.poll(() => service.deps.queue.depth('mail')).toBe(0)
  service.clock.advance({ seconds: 2 * 86_400 + 3_601 })
  const live = await service.signedIn('live-wish@example.com')
  await service.put('/user', { email: 'wanted-now@example.com' }, live.auth)
  await deleteExpired(service.deps, service.deps.log)
  const wishOf = async (userId: string) => (await service.get(`/admin/users/${userId}`, service.admin)).body.new_email
  expect(await wishOf(old.userId)).toBeUndefined()
  expect(await wishOf(live.userId)).toBe('wanted-now@example.com')
  await service.close()
})

describe('anonymous users', () => {
  const DAY = 86_400
  const settings = { AUTH_EXTERNAL_ANONYMOUS_USERS_ENABLED: 'true', AUTH_ANONYMOUS_USERS_MAX_IDLE: '720h' }
  const signUp = async (service: TestService) => toSignedIn((await service.post('/signup', {})).body)
  const later = (service: TestService, days: number) => service.clock.advance({ seconds: days * DAY })
  const tidyUp = tidyUpAgain
  const isThere = async (service: TestService, { userId }: { userId: string }) =>
    (await service.get(`/admin/users/${userId}`, service.admin)).status === 200

  test('are deleted that long after their last activity with all their rows; those active since stay', async ({
    shared,
  }) => {
    const service = await shared.with(settings)
    const [idle, refreshing, changing] = [await signUp(service), await signUp(service), await signUp(service)]
    const [named, imported] = [await signUp(service), await signUp(service)]
    const set = (values: object, { userId }: { userId: string }) =>
      service.deps.db.updateTable('users').set(values).where('id', '=', userId).execute()
    await set({ is_anonymous: false }, named)
    later(service, 20)
    const grant = { refresh_token: refreshing.refreshToken }
    expect((await service.post('/token?grant_type=refresh_token', grant)).status).toBe(200)
    expect((await service.put('/user', { data: { cart: 1 } }, (await refreshed(service, changing)).auth)).status).toBe(
      200,
    )
    const fresh = await signUp(service)
    await set({ last_sign_in_at: service.clock.now() }, imported)
    // Only the change is left as a sign of life.
    await service.deps.db.deleteFrom('sessions').where('user_id', '=', changing.userId).execute()
    later(service, 10)
    await tidyUp(service)
    expect(await isThere(service, idle)).toBe(true)
    service.clock.advance({ seconds: 1 })
    await tidyUp(service)
    expect(await isThere(service, idle)).toBe(false)
    for (const one of [refreshing, changing, imported, named, fresh]) expect(await isThere(service, one)).toBe(true)
    const { rows } = await service.deps.pool.query('select from sessions where user_id = $1', [idle.userId])
    expect(rows).toEqual([])
    later(service, 20)
    await tidyUp(service)
    for (const one of [refreshing, changing, imported, fresh]) expect(await isThere(service, one)).toBe(false)
    expect(await isThere(service, named)).toBe(true)
    await service.close()
  })

  test.for<[string, Record<string, string>, boolean]>([
    ['unset', { AUTH_ANONYMOUS_USERS_MAX_IDLE: '' }, true],
    ['shorter', { AUTH_ANONYMOUS_USERS_MAX_IDLE: '1h' }, false],
  ])('stay or go as the setting says: %s', async ([, others, stays], { shared }) => {
    const service = await shared.with({ ...settings, ...others })
    const idle = await signUp(service)
    later(service, stays ? 10_000 : 1)
    await tidyUp(service)
    expect(await isThere(service, idle)).toBe(stays)
    await service.close()
  })

  test('stay where anonymous sign-in is off', async ({ shared }) => {
    const service = await shared.with(settings)
    const idle = await signUp(service)
    later(service, 31)
    const off = {
      ...service.deps,
      config: { ...service.deps.config, signup: { ...service.deps.config.signup, anonymous: false } },
    }
    await deleteExpired(off, off.log)
    expect(await isThere(service, idle)).toBe(true)
    await service.close()
  })

  test('are scanned along an index, among any number that stay', async () => {
    const service = await startTestService({ ...settings, AUTH_WORKERS_ENABLED: 'false' })
    const { pool } = service.deps
    const ago = (days: number) => new Date(service.clock.now().getTime() - days * DAY * 1000)
    const insert = (ageDays: number, idleDays: number, count: number) =>
      pool.query(
        `insert into users (id, aud, role, is_anonymous, created_at, updated_at)
          select gen_random_uuid(), 'authenticated', 'authenticated', true, $1, $2 from generate_series(1, $3)`,
        [ago(ageDays), ago(idleDays), count],
      )
    const count = async () => Number((await pool.query('select count(*) from users')).rows[0].count)
    await insert(90, 1, 2_000)
    await insert(80, 40, 1_500)
    await pool.query('analyze users')
    const usesIndex = async () => {
      const used = `select idx_scan > 0 as used from pg_stat_user_indexes where indexrelname = 'users_anonymous_idx'`
      return (await pool.query(used)).rows[0].used
    }
    expect(await usesIndex()).toBe(false)
    expect(await count()).toBe(3_500)
    await tidyUp(service)
    expect(await count()).toBe(2_000)
    await expect.poll(usesIndex).toBe(true)
    await service.close()
  })

  test('that return while they are being deleted stay', async ({ shared }) => {
    const service = await shared.with(settings)
    const idle = await signUp(service)
    later(service, 31)
    const client = await service.deps.pool.connect()
    await client.query('begin')
    await client.query('update sessions set refreshed_at = $1 where user_id = $2', [service.clock.now(), idle.userId])
    const tidied = tidyUp(service)
    await expect.poll(() => countLockWaits(service.deps.pool)).toBe(1)
    await client.query('commit')
    client.release()
    await tidied
    expect(await isThere(service, idle)).toBe(true)
    await service.close()
  })
})

async function refreshed(service: TestService, { refreshToken }: { refreshToken: string }) {
  return toSignedIn((await service.post('/token?grant_type=refresh_token', { refresh_token: refreshToken })).body)
}

test('challenges go two days after their end, second factors never proven a day after they were begun', async () => {
  const service = await startTestService()
  const [proven, begun] = [await withTotp(service), await service.signedIn()]
  await enrollTotp(service, begun)
  service.clock.advance({ seconds: 86_401 })
  const fresh = await service.signedIn()
  const { id } = await enrollTotp(service, fresh)
  await deleteExpired(service.deps, service.deps.log)
  const factorsOf = async (userId: string) => (await service.get(`/admin/users/${userId}`, service.admin)).body.factors
  expect(await factorsOf(proven.userId)).toMatchObject([{ id: proven.totp.id }, { factor_type: 'recovery_code' }])
  expect(await factorsOf(begun.userId)).toBeUndefined()
  expect(await factorsOf(fresh.userId)).toMatchObject([{ id }])
  const challenges = async () => (await service.deps.pool.query('select 1 from factor_challenges')).rows.length
  expect(await challenges()).toBe(1)
  service.clock.advance({ seconds: 86_400 + 300 })
  await deleteExpired(service.deps, service.deps.log)
  expect(await challenges()).toBe(0)
  await service.close()
})

test.each(['AUTH_AUDIT_KEEP', 'AUTH_AUDIT_LOG_KEEP'])(
  'audit entries are deleted after %s, and stay if it is unset',
  async (name) => {
    const service = await startTestService({ [name]: '48h', AUTH_WORKERS_ENABLED: 'false' })
    const { userId } = await service.signedIn()
    service.clock.advance({ seconds: 47 * 3_600 })
    await service.put(`/admin/users/${userId}`, { user_metadata: { a: 1 } }, service.admin)
    service.clock.advance({ seconds: 2 * 3_600 })
    const actions = async () =>
      (
        await service.deps.pool.query(
          `select payload ->> 'action' as action from audit_log_entries order by created_at`,
        )
      ).rows
    const forEver = { ...service.deps, config: { ...service.deps.config, auditKeepSeconds: undefined } }
    await deleteExpired(forEver, service.deps.log)
    expect(await actions()).toHaveLength(3)
    await deleteExpired(service.deps, service.deps.log)
    expect(await actions()).toEqual([{ action: 'user_modified' }])
    await service.close()
  },
)

/** Notes each statement that deletes from a table, in order. */
async function recordDeletions({ deps: { pool } }: TestService, ...tables: string[]) {
  await pool.query(`
    create table noted (id serial, what text);
    create function note() returns trigger language plpgsql as
      $$ begin insert into noted (what) values (tg_table_name); return null; end $$`)
  for (const table of tables) {
    await pool.query(`create trigger note after delete on ${table} for each statement execute function note()`)
  }
  return async (): Promise<string[]> =>
    (await pool.query('select what from noted order by id')).rows.map(({ what }) => what)
}

test('many rows of one kind do not keep the other kinds waiting', async () => {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const longAgo = new Date(service.clock.now().getTime() - 86_400_000)
  const insert = `insert into decoy_rows select sha256(n::text::bytea), $1 from generate_series(1, 2500) n`
  await service.deps.pool.query(insert, [longAgo])
  const deletions = await recordDeletions(service, 'decoy_rows', 'rate_limits')
  await deleteExpired(service.deps, service.deps.log)
  expect(await deletions()).toEqual(['decoy_rows', 'rate_limits', 'decoy_rows', 'decoy_rows'])
  await service.close()
})

test('a stop waits for the statement in hand and begins no other', async () => {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const deletions = await recordDeletions(service, 'decoy_rows', 'rate_limits')
  const client = await service.deps.pool.connect()
  await client.query('begin')
  await client.query('lock table decoy_rows in access exclusive mode')
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  onTestFinished(() => {
    vi.useRealTimers()
  })
  const stop = startHousekeeping(service.deps, service.deps.log)
  vi.advanceTimersByTime(600_000)
  vi.useRealTimers()
  await vi.waitFor(async () => expect(await countLockWaits(service.deps.pool)).toBe(1), PATIENCE_MS)
  const stopped = stop()
  await client.query('commit')
  client.release()
  await stopped
  expect(await deletions()).toEqual(['decoy_rows'])
  await service.close()
})

test('refused sign-ins are found behind any number of kept entries, which are read once', async () => {
  const service = await startTestService({ AUTH_WORKERS_ENABLED: 'false' })
  const { pool } = service.deps
  const insert = (action: string, ageDays: number, count: number) =>
    pool.query(
      `insert into audit_log_entries (id, payload, created_at)
        select gen_random_uuid(), jsonb_build_object('action', $1::text), $2 from generate_series(1, $3)`,
      [action, new Date(service.clock.now().getTime() - ageDays * 86_400_000), count],
    )
  const count = async () => Number((await pool.query('select count(*) from audit_log_entries')).rows[0].count)
  const runs = {}
  const round = () => deleteExpired(service.deps, service.deps.log, runs)
  await insert('login', 120, 1_500)
  await insert('login_failed', 110, 700)
  await insert('login_failed', 80, 5)
  await round()
  expect(await count()).toBe(1_505)
  // None is written with an old time: one that is was not looked for again.
  await insert('login_failed', 115, 1)
  service.clock.advance({ seconds: 20 * 86_400 })
  await round()
  expect(await count()).toBe(1_501)
  await service.close()
})

describe('rows of refused requests', () => {
  const password = 'correct horse'
  const STRANGER = 'stranger@example.com'
  const REFUSED: Record<string, (service: TestService) => Promise<{ status: number }>> = {
    'a wrong password': ({ post }) => post('/token?grant_type=password', { email: STRANGER, password }),
    'a wrong code': ({ post }) => post('/verify', { type: 'email', email: STRANGER, token: '000000' }),
    'a link that nothing has': ({ post }) => post('/verify', { type: 'signup', token_hash: 'x' }),
    'an id_token': ({ post }) => post('/token?grant_type=id_token', { provider: 'google', id_token: 'x' }),
    'a PKCE code': ({ post }) => post('/token?grant_type=pkce', { auth_code: 'x', code_verifier: 'x'.repeat(43) }),
    'a refresh token': ({ post }) => post('/token?grant_type=refresh_token', { refresh_token: 'x' }),
    'a sign-up over the budget': ({ post }) => post('/signup', { email: STRANGER, password }),
    'a sign-in mail over the budget': ({ post }) => post('/otp', { email: STRANGER }),
    'a recovery over the budget': ({ post }) => post('/recover', { email: STRANGER }),
    'a confirmation over the budget': ({ post }) => post('/resend', { type: 'signup', email: STRANGER }),
    'a change over the budget': ({ post }) => post('/resend', { type: 'email_change', email: STRANGER }),
    'an SMS that is not sent': ({ post }) => post('/otp', { phone: '4915100000001' }),
    'a sign-in at a provider that is off': ({ get }) => get('/authorize?provider=github'),
    "a provider's answer to nothing": ({ get }) => get('/callback?state=x&code=x'),
  }

  test('go: most within minutes of their time, refused sign-ins after 90 days', async () => {
    const service = await startTestService({
      AUTH_RATE_LIMIT_EMAIL_SENT: '0',
      AUTH_RATE_LIMIT_HEADER: 'x-real-address',
      AUTH_WORKERS_ENABLED: 'false',
    })
    const { pool } = service.deps
    const runs = {}
    const rows = async () => {
      const { rows: tables } = await pool.query(`select tablename from pg_tables where schemaname = 'public'`)
      const counted: Record<string, number> = {}
      for (const { tablename } of tables) {
        counted[tablename] = Number((await pool.query(`select count(*) from "${tablename}"`)).rows[0].count)
      }
      return counted
    }
    // Its first round leaves the time of the next search.
    await deleteExpired(service.deps, service.deps.log, runs)
    const before = await rows()
    for (const [what, ask] of Object.entries(REFUSED)) {
      const from = { 'x-real-address': '192.0.2.1' }
      const { post, get } = service
      const asked = {
        ...service,
        post: (url: string, body: object) => post(url, body, from),
        get: (url: string) => get(url, from),
      }
      expect((await ask(asked as TestService)).status, what).not.toBe(200)
    }
    const left = Object.entries(await rows()).filter(([table, count]) => count !== before[table])
    expect(left.map(([table]) => table).sort()).toEqual([
      'address_claims',
      'audit_log_entries',
      'decoy_rows',
      'rate_limits',
    ])
    service.clock.advance({ seconds: 3_600 + 601 })
    await deleteExpired(service.deps, service.deps.log, runs)
    const { audit_log_entries: refused = 0, ...others } = await rows()
    expect({ ...others, audit_log_entries: before.audit_log_entries }).toEqual(before)
    expect(refused).toBeGreaterThan(0)
    service.clock.advance({ seconds: 90 * 86_400 })
    await deleteExpired(service.deps, service.deps.log, runs)
    expect(await rows()).toEqual(before)
    await service.close()
  })

  test('refused sign-ins are stored two thousand times an hour, then logged alone', async () => {
    const service = await startTestService()
    const wrong = () =>
      service.post('/token?grant_type=password', { email: `${crypto.randomUUID()}@example.com`, password })
    const stored = async () => (await service.deps.pool.query('select from audit_log_entries')).rowCount
    await wrong()
    await service.deps.db
      .updateTable('rate_limits')
      .set({ points: 1_999 })
      .where('key', '=', 'refused-sign-ins:all')
      .execute()
    for (let i = 0; i < 3; i++) expect((await wrong()).status).toBe(400)
    expect(await stored()).toBe(2)
    service.clock.advance({ seconds: 3_601 })
    await wrong()
    expect(await stored()).toBe(3)
    await service.close()
  })
})
