// Statements with a receiver of events; equal-work.test.ts has those without. A stranger's request sends as many,
// whether or not there is an account. A sign-in sends none beside its own. An event that no receiver wants costs
// none. A user with thousands of sessions costs statements of bounded size and delays no other.
import { statementsOf, statementsWithJobs } from '@services/common/testing/database/statements'
import { expect, vi } from 'vitest'
import { deleteExpired } from '../src/housekeeping.ts'
import { remove } from './admin.ts'
import { type TestService, test } from './service.ts'
import { addPausedReceiver, storedEvents } from './upstreams/paused-receiver.ts'

/** Statements of the queue, the limits and checks, and those that the dispatcher and the recorder repeat. */
const ELSEWHERE = /auth_queue|pgboss|pg_notify|transaction_read_only|rate_limits|with busy|unnest\(events\)/i

test.for<[string, object, 'alone'?]>([
  ['/recover', {}],
  ['/otp', { create_user: false }],
  // The mails differ, and so do the statements of their worker.
  ['/signup', { password: 'correct horse' }, 'alone'],
  ['/token?grant_type=password', { password: 'wrong' }],
])('POST %s sends as many for an account and for nobody', async ([path, body, alone], { service }) => {
  await addPausedReceiver(service)
  const emailOf = (who: string) => `${who}-${path.length}@example.com`
  await service.signedIn(emailOf('confirmed'))
  await service.settled()
  const cost = async (who: string) => {
    service.clock.advance({ seconds: 61 })
    const queue = alone && vi.spyOn(service.deps.queue, 'send').mockResolvedValue()
    const ask = () => service.post(path, { email: emailOf(who), ...body })
    const texts = await statementsWithJobs(service, ask, ELSEWHERE)
    queue?.mockRestore()
    return texts.length
  }
  expect(await cost('unknown')).toBe(await cost('confirmed'))
})

test('a sign-in, a refresh and GET /user send as many as without a receiver', async ({ service }) => {
  const email = 'as-many@example.com'
  const { auth, refreshToken: refresh_token } = await service.signedIn(email)
  const cost = async () => [
    (await statementsOf(() => service.post('/token?grant_type=password', { email, password: 'correct horse' }))).length,
    (await statementsOf(() => service.post('/token?grant_type=refresh_token', { refresh_token }))).length,
    (await statementsOf(() => service.get('/user', auth))).length,
  ]
  await service.deps.pool.query('delete from webhooks; delete from webhook_deliveries')
  await service.deps.events.refresh()
  const without = await cost()
  expect(without).not.toContain(0)
  await addPausedReceiver(service)
  expect(await cost()).toEqual(without)
  const created = (await storedEvents(service)).filter(
    ({ event, data }) => event === 'session.created' && data.user.email === email,
  )
  expect(created.length).toBeGreaterThan(0)
})

/** Leaves one receiver, of these events; returns its id. */
async function onlyReceiver(service: TestService, events: string[]): Promise<string> {
  await service.deps.pool.query('delete from webhooks; delete from webhook_deliveries; delete from event_users')
  return addPausedReceiver(service, events)
}

const addSessions = (service: TestService, userId: string, count: number) =>
  service.deps.pool.query(
    `insert into sessions (id, user_id, amr, refreshed_at, created_at)
     select gen_random_uuid(), $1, '[{"method": "password", "timestamp": 1}]', $2::timestamptz, $2::timestamptz
     from generate_series(1, $3)`,
    [userId, service.clock.now(), count],
  )

test('the end of thousands of sessions has an event each, in few statements, and stores the user once', async ({
  service,
}) => {
  const { userId } = await service.signedIn('thousands@example.com')
  await service.put(`/admin/users/${userId}`, { user_metadata: { note: 'n'.repeat(2_000) } }, service.admin)
  await onlyReceiver(service, ['*'])
  await addSessions(service, userId, 2_500)
  const change = () => service.put(`/admin/users/${userId}`, { password: 'another horse' }, service.admin)
  const texts = await statementsOf(async () => expect((await change()).status).toBe(200))
  expect(texts.filter((text) => text.includes('insert into "webhook_deliveries"'))).toHaveLength(4)
  expect(texts.filter((text) => /from "sessions"/.test(text))).toHaveLength(1)
  const events = await storedEvents(service)
  expect(events.map(({ event }) => event)).toEqual(['password.changed', ...Array(2_501).fill('session.ended')])
  const { rows } = await service.deps.pool.query(`
    select (select count(*)::integer from event_users) as users, count(distinct id)::integer as events,
      count(distinct data -> 'session' ->> 'id')::integer as sessions, max(length(data::text)) < 500 as are_small
    from webhook_deliveries`)
  expect(rows).toEqual([{ users: 1, events: 2_502, sessions: 2_501, are_small: true }])
  expect(events.at(-1)?.data).toMatchObject({
    user: (await service.get(`/admin/users/${userId}`, service.admin)).body,
    session: { aal: 'aal1', methods: ['password'], user_agent: null, ip: null },
    reason: 'password_changed',
  })
})

test('a change that no receiver wants sends as many statements as without a receiver', async ({ service }) => {
  const { userId } = await service.signedIn('unwanted@example.com')
  const cost = () =>
    statementsOf(() => service.put(`/admin/users/${userId}`, { password: 'another horse' }, service.admin))
  await onlyReceiver(service, ['user.created', 'session.created', 'message.*', 'security.*'])
  const unwanted = await cost()
  await service.deps.pool.query('delete from webhooks; delete from webhook_deliveries; delete from event_users')
  await service.deps.events.refresh()
  expect(unwanted).toEqual(await cost())
})

test('expired sessions of a user, however many, delay those of no other user', async ({ service }) => {
  await onlyReceiver(service, ['session.ended'])
  const many = await service.signedIn('many@example.com')
  await addSessions(service, many.userId, 450)
  service.clock.advance({ seconds: 60 })
  const one = await service.signedIn('one@example.com')
  const left = async () => {
    const { rows } = await service.deps.pool.query(
      'select user_id, count(*)::integer from sessions where user_id = any ($1) group by user_id',
      [[many.userId, one.userId]],
    )
    return Object.fromEntries(rows.map(({ user_id, count }) => [user_id, count]))
  }
  service.clock.advance({ seconds: 3 * 86_400 })
  const limited = await service.with({ AUTH_SESSIONS_TIMEBOX: '3600' })
  const other = await service.deps.pool.connect()
  await other.query('begin')
  await other.query('select from users where id = $1 for update', [many.userId])
  await deleteExpired(limited.deps, service.deps.log)
  expect(await left()).toEqual({ [many.userId]: 451 })
  await other.query('rollback')
  other.release()
  const texts = await statementsOf(() => deleteExpired(limited.deps, service.deps.log))
  expect(await left()).toEqual({})
  // 200 sessions at once.
  expect(texts.filter((text) => text.includes('delete from "sessions"'))).toHaveLength(3)
  const events = (await storedEvents(service)).map(({ user_id, data }) => [user_id, data.reason])
  const expected = [one, ...Array(451).fill(many)].map(({ userId }) => [userId, 'expired'])
  expect(events.filter(([userId]) => userId === many.userId || userId === one.userId)).toEqual(expected)
})

test('a deletion erases a thousand events and housekeeping the rest, however many there are', async ({ service }) => {
  const { userId } = await service.signedIn('much-told@example.com')
  const id = await onlyReceiver(service, ['user.deleted'])
  await service.deps.pool.query(
    `with event as (
       insert into event_users (id, user_id, data, created_at)
       select gen_random_uuid(), $1, '{"email": "much-told@example.com"}', $2 from generate_series(1, 2500) returning id
     )
     insert into webhook_deliveries
       (webhook_id, id, user_id, event, data, event_user_id, state, give_up_at, created_at)
     select $3, id, $1, 'session.ended', '{"session": {"ip": "192.0.2.1"}}', id, 'delivered', $2, $2 from event`,
    [userId, service.clock.now(), id],
  )
  const left = async () => {
    const { rows } = await service.deps.pool.query(
      `select (select count(*)::integer from event_users where user_id = $1) as users, count(*)::integer as events
       from webhook_deliveries where user_id = $1 and data -> 'session' ? 'ip'`,
      [userId],
    )
    return rows[0]
  }
  const texts = await statementsOf(() => remove(service, `/admin/users/${userId}`, service.admin))
  expect(texts.filter((text) => text.includes('delete from "event_users"'))).toHaveLength(1)
  expect(await left()).toEqual({ users: 1_500, events: 1_500 })
  service.clock.advance({ seconds: 3_600 })
  await deleteExpired(service.deps, service.deps.log)
  expect(await left()).toEqual({ users: 0, events: 0 })
})

test('a change stores no user for receivers that are gone before this process knows', async ({ service }) => {
  const { userId } = await service.signedIn('not-wanted@example.com')
  await onlyReceiver(service, ['user.updated'])
  await service.deps.pool.query(`update webhooks set events = '{user.deleted}'`)
  const change = { user_metadata: { name: 'Ada' } }
  expect((await service.put(`/admin/users/${userId}`, change, service.admin)).status).toBe(200)
  expect((await service.deps.pool.query('select from event_users')).rowCount).toBe(0)
})
