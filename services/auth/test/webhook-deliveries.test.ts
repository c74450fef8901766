// Deliveries of events to receivers that behave in every way, over real sockets. The test is the worker: it starts and
// stops dispatchers, and its clock decides what is due.
import type { ServerResponse } from 'node:http'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { type Received, type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { type Kysely, sql } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, expect, onTestFinished, test } from 'vitest'
import { deleteIdleAnonymousUsers } from '../src/core/users/anonymous-users.store.ts'
import { claimDue } from '../src/core/webhooks/claims.store.ts'
import { restartSince } from '../src/core/webhooks/deliveries.store.ts'
import { startDispatcher } from '../src/core/webhooks/dispatcher.ts'
import { deleteOrphans } from '../src/core/webhooks/unwanted-deliveries.store.ts'
import type { DB } from '../src/db/tables.ts'
import { type UserWatch, watchUsers } from '../src/db/watched-users.ts'
import { deleteExpired } from '../src/housekeeping.ts'
import { remove } from './admin.ts'
import { startTestService, type TestService } from './service.ts'

const DAY = 86_400
const HOUR = 3_600

let service: TestService
let receiver: Receiver
beforeAll(async () => {
  service = await startTestService({ AUTH_WORKERS_ENABLED: 'false', AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8' })
})
afterAll(() => service.close())
beforeEach(async () => {
  receiver = await startReceiver()
  await service.deps.pool.query('delete from webhooks')
  await service.deps.pool.query('delete from webhook_deliveries')
  await service.deps.pool.query('delete from event_users')
})
afterEach(() => receiver.close())

const dispatch = (of: TestService = service, answerWithinMs = 600_000) => {
  const stop = startDispatcher(of.deps, { answerWithinMs })
  onTestFinished(stop)
  return stop
}

async function register(url = receiver.url, events = ['user.*']) {
  const { status, body } = await service.post('/admin/webhooks', { url: `${url}/events`, events }, service.admin)
  expect(status).toBe(201)
  return body as { id: string; secret: string }
}

const newUser = async () => (await service.post('/admin/users', { email: newEmail() }, service.admin)).body.id as string
const newEmail = () => `user-${Math.random().toString(36).slice(2)}@example.com`
const change = (id: string, n: number) => service.put(`/admin/users/${id}`, { user_metadata: { n } }, service.admin)

const webhook = async (id: string) => (await service.get(`/admin/webhooks/${id}`, service.admin)).body
const deliveries = async (id: string, query = '') =>
  (await service.get(`/admin/webhooks/${id}/deliveries${query}`, service.admin)).body.deliveries
const states = async (id: string) => (await deliveries(id)).map(({ state }: { state: string }) => state)
const shownUsers = async () => (await service.deps.pool.query('select from event_users')).rowCount
const latest = async (id: string) => (await deliveries(id))[0]

const later = (seconds: number) => {
  service.clock.advance({ seconds })
  service.deps.events.wake()
}
const events = (of = receiver) => of.received.map(({ body }) => JSON.parse(body))
const idsAt = (of = receiver) => of.received.map(({ headers }) => headers['webhook-id'])

/** Compares signatures of the newest request: the library would compare its time with the machine's. */
function isSignedBy(secret: string): boolean {
  const { body, headers } = receiver.received.at(-1) as Received
  const signed = new Webhook(secret).sign(String(headers['webhook-id']), service.clock.now(), body)
  return String(headers['webhook-signature']).split(' ').includes(signed)
}

test('a receiver gets what it wants, signed, in the order of the changes', async () => {
  const { secret } = await register(receiver.url, ['user.created', 'user.updated'])
  dispatch()
  const id = await newUser()
  for (let n = 1; n <= 3; n++) await change(id, n)
  await service.put(`/admin/users/${id}`, { password: 'correct horse' }, service.admin)
  await expect.poll(() => receiver.received.length).toBe(4)
  const [first] = receiver.received
  expect(isSignedBy(secret)).toBe(true)
  expect(JSON.parse(first?.body ?? '')).toMatchObject({
    type: 'user.created',
    timestamp: service.clock.now().toISOString(),
    data: { user: { id } },
  })
  expect(events().map(({ type, data }) => [type, data.user.user_metadata.n])).toEqual([
    ['user.created', undefined],
    ['user.updated', 1],
    ['user.updated', 2],
    ['user.updated', 3],
  ])
  expect(first?.headers['user-agent']).toMatch(/^auth\//)
  expect(first?.headers).not.toHaveProperty('traceparent')
})

test('two replicas deliver each event once, and those of a user in their order', async () => {
  const replica = await startTestService(
    {
      AUTH_DATABASE_URL: service.deps.config.database.url,
      ...{ AUTH_WORKERS_ENABLED: 'false', AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8' },
    },
    service.clock,
  )
  onTestFinished(() => replica.close())
  await register()
  await replica.deps.events.refresh()
  const users = await Promise.all([newUser(), newUser(), newUser()])
  dispatch()
  dispatch(replica)
  const work = users.map(async (id) => {
    for (let n = 1; n <= 5; n++)
      await (n % 2 ? service : replica).put(`/admin/users/${id}`, { user_metadata: { n } }, service.admin)
  })
  await Promise.all(work)
  await expect.poll(() => receiver.received.length).toBe(18)
  expect(new Set(idsAt()).size).toBe(18)
  for (const id of users) {
    const own = events().filter(({ data }) => data.user.id === id)
    expect(own.map(({ data }) => data.user.user_metadata.n)).toEqual([undefined, 1, 2, 3, 4, 5])
  }
})

test('an event that is put off while the one before it ends is brought forward', async () => {
  const { pool } = service.deps
  const { id } = await register()
  // The end of the attempt stops behind its snapshot, which lacks the event that comes now.
  await pool.query(`
    create function stop_ends() returns trigger language plpgsql as $$begin
      if current_query() like '%last_status%' then perform pg_advisory_xact_lock(1); end if;
      return null;
    end$$;
    create trigger stop_ends before update on webhook_deliveries for each statement execute function stop_ends()`)
  onTestFinished(async () => void (await pool.query('drop function stop_ends cascade')))
  const holder = await pool.connect()
  // Closed, and its lock with it.
  onTestFinished(() => holder.release(true))
  await holder.query('select pg_advisory_lock(1)')
  const user = await newUser()
  dispatch()
  await expect.poll(() => countLockWaits(pool)).toBe(1)
  await change(user, 1)
  service.deps.events.wake()
  const now = service.clock.now().toISOString()
  await expect.poll(async () => (await latest(id)).next_at > now).toBe(true)
  await holder.query('select pg_advisory_unlock(1)')
  await expect.poll(() => receiver.received.length).toBe(2)
})

test('receivers that hang delay no other one', async () => {
  receiver.answer = () => {}
  for (let n = 0; n < 5; n++) await register(receiver.url)
  const other = await startReceiver()
  onTestFinished(() => other.close())
  await register(other.url)
  dispatch()
  for (let n = 1; n <= 4; n++) {
    await newUser()
    await expect.poll(() => other.received.length).toBe(n)
  }
  // Each has its slots and no more.
  expect(receiver.received.length).toBeLessThanOrEqual(15)
  receiver.close()
})

test.for<[string, Receiver['answer'], { status?: number; error: string }]>([
  ['says 500', (response) => response.writeHead(500).end(), { status: 500, error: 'status' }],
  ['says 404', (response) => response.writeHead(404).end('x'), { status: 404, error: 'status' }],
  [
    'leads elsewhere',
    (response) => response.writeHead(302, { location: '/x' }).end(),
    { status: 302, error: 'redirect' },
  ],
  ['hangs up', (response) => response.destroy(), { error: 'unreachable' }],
  ['answers too much', (response) => response.writeHead(200).end('x'.repeat(100_000)), { error: 'answer_too_large' }],
  ['does not answer in time', () => {}, { error: 'timeout' }],
])('a receiver that %s has failed, and gets the event again with the same id and body', async ([, answer, seen]) => {
  receiver.answer = answer
  const { id } = await register()
  await newUser()
  const stop = seen.error === 'timeout' ? dispatch(service, 300) : dispatch()
  await expect.poll(async () => (await latest(id)).error).toBe(seen.error)
  expect(await latest(id)).toMatchObject({ state: 'waiting', attempts: 1, ...seen })
  await stop()
  receiver.answer = (response) => response.writeHead(204).end()
  dispatch()
  later(10)
  await expect.poll(() => states(id)).toEqual(['delivered'])
  expect(await latest(id)).toMatchObject({ attempts: 2, status: 204 })
  expect(new Set(idsAt()).size).toBe(1)
  expect(new Set(receiver.received.map(({ body }) => body)).size).toBe(1)
})

/** Whether the oldest event that waits may be attempted now. */
async function isWaitOver(): Promise<boolean> {
  const { rows } = await service.deps.pool.query(
    `select greatest(d.next_at, w.paused_until) <= $1 as is_over
      from webhook_deliveries d join webhooks w on w.id = d.webhook_id
      where d.state = 'waiting' order by d.position limit 1`,
    [service.clock.now()],
  )
  return rows[0].is_over
}

test('a receiver that is down for a day gets everything afterwards, in order', async () => {
  receiver.answer = (response) => response.writeHead(503).end()
  const { id } = await register()
  const user = await newUser()
  dispatch()
  let n = 0
  for (let hour = 0; hour < 24; hour++) {
    await change(user, ++n)
    later(HOUR)
    await expect.poll(isWaitOver).toBe(false)
    await expect.poll(async () => (await running()) === 0).toBe(true)
  }
  expect((await states(id)).every((state: string) => state === 'waiting')).toBe(true)
  const failed = receiver.received.length
  // Every hour at first, then after growing waits.
  expect(failed).toBeGreaterThan(9)
  receiver.answer = (response) => response.writeHead(204).end()
  later(12 * HOUR)
  await expect.poll(() => states(id)).toEqual(Array(25).fill('delivered'))
  const delivered = events().slice(failed)
  expect(delivered.map(({ data }) => data.user.user_metadata.n ?? 0)).toEqual([...Array(25).keys()])
  expect(await failuresOf(id)).toEqual({ failures: 0, failing_since: null, paused_until: null })
})

const running = async () =>
  (await service.deps.pool.query('select from webhook_deliveries where is_running')).rowCount as number
const failuresOf = async (id: string) =>
  (await service.deps.pool.query('select failures, failing_since, paused_until from webhooks where id = $1', [id]))
    .rows[0]

test('an event that is refused again and again holds up no other user', async () => {
  // A status of the event's own: one of the receiver's would pause it.
  receiver.answer = (response, { body }) => response.writeHead(body.includes('"poison"') ? 422 : 204).end()
  const { id } = await register(receiver.url, ['user.created'])
  const input = { email: newEmail(), user_metadata: { a: 'poison' } }
  await service.post('/admin/users', input, service.admin)
  dispatch()
  for (let n = 1; n <= 5; n++) {
    await newUser()
    later(11)
    await expect.poll(async () => (await states(id)).filter((state: string) => state === 'delivered').length).toBe(n)
    await expect.poll(running).toBe(0)
  }
  const { attempts, state } = (await deliveries(id)).at(-1)
  expect(state).toBe('waiting')
  // Its own waits grow: it is not due again with each success of another.
  expect(attempts).toBeLessThanOrEqual(5)
})

test('an event is given up after three days, and a receiver that fails for five is disabled', async () => {
  receiver.answer = (response) => response.writeHead(500).end()
  const { id } = await register()
  await newUser()
  dispatch()
  await expect.poll(() => receiver.received.length).toBe(1)
  for (let half = 0; half < 8; half++) {
    await expect.poll(running).toBe(0)
    later(DAY / 2)
  }
  await expect.poll(() => states(id)).toEqual(['failed'])
  later(DAY + HOUR)
  await newUser()
  await expect.poll(async () => (await webhook(id)).enabled).toBe(false)
  expect(await webhook(id)).toMatchObject({ disabled_reason: 'failing' })
  // Later events wait for three days.
  await newUser()
  expect(await states(id)).toEqual(['waiting', 'waiting', 'failed'])
  receiver.answer = (response) => response.writeHead(204).end()
  const enabled = await service.put(`/admin/webhooks/${id}`, { enabled: true }, service.admin)
  expect(enabled.body).toEqual(expect.not.objectContaining({ disabled_reason: expect.anything() }))
  await expect.poll(() => states(id)).toEqual(['delivered', 'delivered', 'failed'])
})

test('events that wait for a disabled receiver fail after three days', async () => {
  const { id } = await register()
  await service.put(`/admin/webhooks/${id}`, { enabled: false }, service.admin)
  await newUser()
  service.clock.advance({ seconds: 3 * DAY + 1 })
  await deleteExpired(service.deps, service.deps.log)
  expect(await deliveries(id)).toMatchObject([{ state: 'failed', error: 'given_up', attempts: 0 }])
  service.clock.advance({ seconds: 5 * DAY })
  await deleteExpired(service.deps, service.deps.log)
  expect(await deliveries(id)).toEqual([])
  expect(await shownUsers()).toBe(0)
})

test('the user of events stays while one of them waits, however short the log is kept', async () => {
  const short = await service.with({ AUTH_WEBHOOK_RETENTION: '1h' })
  const { id } = await register(receiver.url, ['user.created', 'user.confirmed'])
  const email = newEmail()
  await service.post('/admin/users', { email, email_confirm: true }, service.admin)
  receiver.answer = (response, { body }) => response.writeHead(body.includes('user.confirmed"') ? 503 : 204).end()
  dispatch()
  // The ids of one moment have no order.
  await expect.poll(async () => (await states(id)).toSorted()).toEqual(['delivered', 'waiting'])
  later(2 * HOUR)
  await deleteExpired(short.deps, service.deps.log)
  expect(await states(id)).toEqual(['waiting'])
  receiver.answer = (response) => response.writeHead(204).end()
  later(12 * HOUR)
  await expect.poll(() => states(id)).toEqual(['delivered'])
  expect(events().at(-1)).toMatchObject({ type: 'user.confirmed', data: { user: { email } } })
  await deleteExpired(short.deps, service.deps.log)
  expect(await shownUsers()).toBe(0)
})

/** Deletes as a process does that has not read the receivers. */
async function unaware(deleteUser: () => Promise<unknown>): Promise<void> {
  watchUsers(service.deps.db, { isOn: () => false } as UserWatch)
  await deleteUser()
  await service.deps.events.refresh()
  expect(await shownUsers()).toBe(0)
}

test.for<[string, (userId: string) => Promise<unknown>]>([
  [
    'a process that knows of no receiver',
    (userId) => unaware(() => remove(service, `/admin/users/${userId}`, service.admin, {})),
  ],
  [
    'housekeeping that knows of no receiver',
    (userId) =>
      unaware(async () => {
        await service.deps.pool.query('update users set is_anonymous = true where id = $1', [userId])
        const idleSince = new Date(service.clock.now().getTime() + 1)
        for await (const _ of deleteIdleAnonymousUsers(service.deps.db, idleSince));
      }),
  ],
  ['a statement of the operator', (userId) => service.deps.pool.query('delete from users where id = $1', [userId])],
])('events of a user whom %s deleted are sent and kept without personal data', async ([, deleteUser]) => {
  const { id } = await register(receiver.url, ['user.created'])
  const userId = await newUser()
  await deleteUser(userId)
  dispatch()
  await expect.poll(() => states(id)).toEqual(['delivered'])
  expect(events()).toMatchObject([{ type: 'user.created', data: { user: { id: userId } } }])
  expect(receiver.received[0]?.body).not.toContain('@')
  service.clock.advance({ seconds: HOUR })
  await deleteExpired(service.deps, service.deps.log)
  const { rows } = await service.deps.pool.query('select data from webhook_deliveries')
  expect(rows).toEqual([{ data: { user: { id: userId } } }])
  expect(await shownUsers()).toBe(0)
})

test('a receiver that answers 410 is disabled at once, and no event waits for it', async () => {
  receiver.answer = (response) => response.writeHead(410).end()
  const { id } = await register()
  const user = await newUser()
  await change(user, 1)
  dispatch()
  await expect.poll(() => states(id)).toEqual(['failed', 'failed'])
  expect(await webhook(id)).toMatchObject({ enabled: false, disabled_reason: 'gone' })
  expect(receiver.received).toHaveLength(1)
  await change(user, 2)
  await service.put(`/admin/webhooks/${id}`, { enabled: false }, service.admin)
  await change(user, 3)
  expect(await deliveries(id)).toHaveLength(2)
  expect(await webhook(id)).toMatchObject({ enabled: false, disabled_reason: 'gone' })
  await remove(service, `/admin/users/${user}`, service.admin, {})
  const { rows } = await service.deps.pool.query('select data from webhook_deliveries where user_id = $1', [user])
  for (const { data } of rows) expect(data).toEqual({ user: { id: user } })
})

test('a locked delivery holds up no other one that is accepted with it', async () => {
  const held: ServerResponse[] = []
  receiver.answer = (response) => void held.push(response)
  const [locked, free] = [await register(), await register()]
  await newUser()
  dispatch()
  await expect.poll(() => held.length).toBe(2)
  const release = await lockRow('webhook_deliveries', locked.id, 'webhook_id')
  for (const response of held) response.writeHead(204).end()
  await expect.poll(() => states(free.id)).toEqual(['delivered'])
  expect(await states(locked.id)).toEqual(['waiting'])
  await release()
  await expect.poll(() => states(locked.id)).toEqual(['delivered'])
})

test('all events that wait for a receiver are due as soon as it has another address', async () => {
  const { id } = await register()
  await copyEvents(await newUser(), 1_200)
  await service.deps.pool.query(
    `update webhook_deliveries set last_error = 'status', next_at = next_at + interval '1 h'`,
  )
  await service.put(`/admin/webhooks/${id}`, { url: `${receiver.url}/elsewhere` }, service.admin)
  const late = await service.deps.pool.query('select from webhook_deliveries where next_at > $1', [service.clock.now()])
  expect(late.rowCount).toBe(0)
})

test('a receiver with another address is asked at once', async () => {
  receiver.answer = (response) => response.writeHead(503).end()
  const { id } = await register()
  await newUser()
  dispatch()
  // An attempt under way would still end with its own wait.
  await expect.poll(async () => (await failuresOf(id)).failures).toBe(1)
  receiver.answer = (response) => response.writeHead(204).end()
  await service.put(`/admin/webhooks/${id}`, { url: `${receiver.url}/elsewhere` }, service.admin)
  await expect.poll(() => states(id)).toEqual(['delivered'])
  expect(await failuresOf(id)).toEqual({ failures: 0, failing_since: null, paused_until: null })
})

test('events that wait while the secret is rotated are signed by both secrets, for a day', async () => {
  const { id, secret } = await register()
  const user = await newUser()
  const rotated = await service.post(`/admin/webhooks/${id}/rotate-secret`, {}, service.admin)
  expect(rotated.body.secret).not.toBe(secret)
  dispatch()
  await expect.poll(() => receiver.received.length).toBe(1)
  expect([secret, rotated.body.secret].map(isSignedBy)).toEqual([true, true])
  service.clock.advance({ seconds: DAY })
  await change(user, 1)
  await expect.poll(() => receiver.received.length).toBe(2)
  expect([secret, rotated.body.secret].map(isSignedBy)).toEqual([false, true])
})

test('an event whose process died after the commit, or in an attempt, is delivered by another', async () => {
  const { id } = await register()
  await newUser()
  const now = service.clock.now()
  const leaseUntil = new Date(now.getTime() + 60_000)
  // The attempt of a process that dies.
  const { claimed } = await claimDue(service.deps.db, { now, leaseUntil, atOnce: 3, busy: new Map() })
  expect(claimed).toHaveLength(1)
  await newUser()
  dispatch()
  await expect.poll(() => states(id)).toEqual(['delivered', 'waiting'])
  later(61)
  await expect.poll(() => states(id)).toEqual(['delivered', 'delivered'])
})

/** Copies the events of a user so many times. */
async function copyEvents(userId: string, count: number): Promise<void> {
  const copies = `insert into webhook_deliveries
      (webhook_id, id, user_id, event, data, event_user_id, state, next_at, give_up_at, created_at)
    select webhook_id, gen_random_uuid(), user_id, event, data || jsonb_build_object('padding', repeat('x', 1000)),
      event_user_id, state, next_at, give_up_at, created_at
    from webhook_deliveries, generate_series(1, $2) where user_id = $1`
  await service.deps.pool.query(copies, [userId, count])
}

/** Counts the deliveries that a claim reads. */
async function readByClaim(): Promise<number> {
  const now = service.clock.now()
  let read = 0
  const claim = service.deps.db.transaction().execute(async (trx) => {
    // The connection's own statements before are in it too.
    const before = await readUntilNow(trx)
    await claimDue(trx, { now, leaseUntil: new Date(now.getTime() + 60_000), atOnce: 3, busy: new Map() })
    read = (await readUntilNow(trx)) - before
    throw new Error('undone')
  })
  await expect(claim).rejects.toThrow('undone')
  return read
}

async function readUntilNow(trx: Kysely<DB>): Promise<number> {
  const { rows } = await sql<{ read: number }>`
    select (seq_tup_read + idx_tup_fetch)::integer as read from pg_stat_xact_user_tables
    where relname = 'webhook_deliveries'`.execute(trx)
  return rows[0]?.read ?? 0
}

test('thousands of events that wait delay neither each other nor those of another user or receiver', async () => {
  const other = await startReceiver()
  onTestFinished(() => other.close())
  await register(receiver.url, ['user.created'])
  const [first, second] = [await newUser(), await newUser()]
  await copyEvents(first, 1_500)
  await service.deps.pool.query(`update webhook_deliveries set state = 'delivered', next_at = null`)
  await service.deps.pool.query('analyze webhook_deliveries')
  const few = [await readByClaim()]
  // Statistics in which nothing waits, and then those in which most does.
  await service.deps.pool.query(
    `update webhook_deliveries set state = 'waiting', next_at = created_at
    where id in (select id from webhook_deliveries where user_id = $1 limit 1200)`,
    [first],
  )
  few.push(await readByClaim())
  await service.deps.pool.query('analyze webhook_deliveries')
  few.push(await readByClaim())
  for (const read of few) expect(read).toBeLessThan(800)
  await register(other.url, ['user.updated'])
  await change(second, 1)
  dispatch()
  await expect.poll(() => other.received.length).toBe(1)
  await newUser()
  await expect.poll(() => new Set(events().map(({ data }) => data.user.id)).size).toBe(2)
})

test('an event behind a slow one is put off for as long as it has waited, up to ten minutes', async () => {
  receiver.answer = () => {}
  const { id } = await register()
  const user = await newUser()
  dispatch()
  await expect.poll(() => receiver.received.length).toBe(1)
  await change(user, 1)
  const wait = async () => (Date.parse((await latest(id)).next_at) - service.clock.now().getTime()) / 1000
  for (const [after, putOff] of [
    [0, 60],
    [300, 300],
    [900, 600],
  ] as const) {
    later(after)
    await expect.poll(wait).toBe(putOff)
  }
})

test('a stopping process gives back what it has not finished', async () => {
  receiver.answer = () => {}
  const { id } = await register()
  await newUser()
  const stop = startDispatcher(service.deps, { answerWithinMs: 600_000, stopGraceMs: 0 })
  await expect.poll(() => receiver.received.length).toBe(1)
  await stop()
  expect(await deliveries(id)).toMatchObject([
    { state: 'waiting', attempts: 0, next_at: service.clock.now().toISOString() },
  ])
  receiver.close()
})

test('an event that waits for an enabled receiver is attempted at least once, however late', async () => {
  const { id } = await register()
  await newUser()
  service.clock.advance({ seconds: 4 * DAY })
  await deleteExpired(service.deps, service.deps.log)
  expect(await states(id)).toEqual(['waiting'])
  dispatch()
  await expect.poll(() => states(id)).toEqual(['delivered'])
})

/** Locks a row until the returned function is called, or the test ends. */
async function lockRow(
  table: 'webhooks' | 'webhook_deliveries',
  id: string,
  column: 'id' | 'webhook_id' = 'id',
): Promise<() => Promise<void>> {
  const client = await service.deps.pool.connect()
  let isHeld = true
  const release = async () => {
    if (!isHeld) return
    isHeld = false
    await client.query('rollback')
    client.release()
  }
  onTestFinished(release)
  await client.query('begin')
  await client.query(`select from ${table} where ${column} = $1 for update`, [id])
  return release
}

test.for<[string, (id: string) => Promise<unknown>, object?]>([
  [
    'wants no more events',
    async () => {
      receiver.answer = (response) => response.writeHead(410).end()
      dispatch()
    },
    { enabled: false, disabled_reason: 'gone' },
  ],
  ['works again', async () => void dispatch(), { failures: 0 }],
  ['is enabled', (id) => service.put(`/admin/webhooks/${id}`, { enabled: true }, service.admin), { failures: 0 }],
  ['is deleted', (id) => service.delete(`/admin/webhooks/${id}`, service.admin)],
])('a receiver that %s waits for none of its many events', async ([, act, expected]) => {
  const { id } = await register()
  await newUser()
  const waiting = await newUser()
  await service.deps.pool.query(`update webhooks set failures = 3 where id = $1`, [id])
  await service.deps.pool.query(
    `update webhook_deliveries set last_error = 'status', next_at = next_at + interval '1 hour' where user_id = $1`,
    [waiting],
  )
  await lockRow('webhook_deliveries', (await latest(id)).id)
  await act(id)
  const found = async () => (await service.deps.pool.query('select * from webhooks where id = $1', [id])).rows[0]
  if (expected) await expect.poll(found).toMatchObject(expected)
  else await expect.poll(found).toBeUndefined()
})

test('the events of a deleted receiver are deleted in batches, the last by housekeeping', async () => {
  const { id } = await register()
  await copyEvents(await newUser(), 1_200)
  await service.delete(`/admin/webhooks/${id}`, service.admin)
  const left = async () => (await service.deps.pool.query('select from webhook_deliveries')).rowCount
  expect(await left()).toBe(201)
  await deleteExpired(service.deps, service.deps.log)
  expect(await left()).toBe(0)
})

test('a process that dies at the end of an outage leaves no event behind', async () => {
  const { id } = await register()
  await newUser()
  const waiting = await newUser()
  await service.deps.pool.query('update webhooks set failures = 3')
  await service.deps.pool.query(
    `update webhook_deliveries set last_error = 'status', next_at = next_at + interval '1 hour' where user_id = $1`,
    [waiting],
  )
  const release = await lockRow('webhooks', id)
  dispatch()
  // The outage has not ended in the database, and what waits is sent already.
  await expect.poll(() => receiver.received.length).toBe(2)
  expect(await failuresOf(id)).toMatchObject({ failures: 3 })
  await release()
  await expect.poll(() => states(id)).toEqual(['delivered', 'delivered'])
})

test('events of a receiver that is back stay, although housekeeping has found them before', async () => {
  const [gone = '', back = ''] = [(await register()).id, (await register()).id].toSorted()
  await newUser()
  const { pool } = service.deps
  await pool.query('delete from webhooks where id = $1', [gone])
  await pool.query('update webhooks set id = gen_random_uuid()')
  const orphans = deleteOrphans(service.deps.db)
  await orphans.next()
  await pool.query('update webhooks set id = $1', [back])
  await orphans.next()
  const { rows } = await pool.query('select webhook_id from webhook_deliveries')
  expect(rows).toEqual([{ webhook_id: back }])
})

test.for<[string, (user: string) => Promise<unknown>]>([
  ['an erasure', (user) => remove(service, `/admin/users/${user}`, service.admin, {})],
  [
    'a replay',
    () =>
      service.deps.db.transaction().execute((trx) => {
        const now = service.clock.now()
        const range = { since: now, webhookId: undefined, now, giveUpAt: now, after: undefined, limit: 100 }
        return restartSince(trx, range)
      }),
  ],
])('%s locks events in the order of their keys, so that none waits for another in a circle', async ([, act]) => {
  const { id } = await register()
  const user = await newUser()
  await service.deps.pool.query('delete from webhook_deliveries')
  const ids = [3, 2, 1].map((n) => `00000000-0000-4000-8000-00000000000${n}`)
  for (const eventId of ids) {
    await service.deps.pool.query(
      `insert into webhook_deliveries (webhook_id, id, user_id, event, data, state, give_up_at, created_at)
        values ($1, $2, $3, 'user.updated', '{}', 'failed', $4, $4)`,
      [id, eventId, user, service.clock.now()],
    )
  }
  const release = await lockRow('webhook_deliveries', ids[1] as string)
  const acting = act(user)
  await expect.poll(() => countLockWaits(service.deps.pool)).toBe(1)
  const { rows } = await service.deps.pool.query('select id from webhook_deliveries for update skip locked')
  await release()
  await acting
  expect(rows).toEqual([{ id: ids[0] }])
})

/** Lets the receiver answer with the status that is given later. */
function holdAnswers(): (status: number) => void {
  const { promise, resolve } = Promise.withResolvers<number>()
  receiver.answer = (response) => void promise.then((status) => response.writeHead(status).end())
  return resolve
}

test('an answer of an address that was replaced meanwhile says nothing about the new one', async () => {
  const answer = holdAnswers()
  const { id } = await register()
  await newUser()
  dispatch()
  await expect.poll(() => receiver.received.length).toBe(1)
  const other = await startReceiver()
  onTestFinished(() => other.close())
  await service.put(`/admin/webhooks/${id}`, { url: other.url }, service.admin)
  answer(410)
  await expect.poll(() => other.received.length).toBe(1)
  await expect.poll(() => states(id)).toEqual(['delivered'])
  expect(await webhook(id)).toMatchObject({ enabled: true })
})

test('an event that an admin sends again in its last attempt is not given up with that', async () => {
  const answer = holdAnswers()
  const { id } = await register()
  await newUser()
  service.clock.advance({ seconds: 4 * DAY })
  dispatch()
  await expect.poll(() => receiver.received.length).toBe(1)
  await service.post(`/admin/webhooks/${id}/deliveries/${(await latest(id)).id}/retry`, {}, service.admin)
  answer(404)
  await expect.poll(async () => (await latest(id)).error).toBe('status')
  expect(await latest(id)).toMatchObject({ state: 'waiting' })
})

test('a receiver that wants no more events stays so, whatever another attempt ends with', async () => {
  const answers: ((status: number) => void)[] = []
  receiver.answer = (response) => void answers.push((status) => response.writeHead(status).end())
  const { id } = await register(receiver.url, ['user.created'])
  const longAgo = new Date(service.clock.now().getTime() - 6 * DAY * 1_000)
  await service.deps.pool.query('update webhooks set failing_since = $1', [longAgo])
  await newUser()
  await newUser()
  dispatch()
  await expect.poll(() => answers.length).toBe(2)
  answers[0]?.(410)
  await expect.poll(async () => (await webhook(id)).disabled_reason).toBe('gone')
  answers[1]?.(500)
  await expect.poll(async () => (await failuresOf(id)).failures).toBe(2)
  expect(await webhook(id)).toMatchObject({ disabled_reason: 'gone' })
})
