// The admin API of receivers, the receiver of the settings, and replays.

import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest'
import { wantsEvent } from '../src/db/watched-users.ts'
import { deleteExpired } from '../src/housekeeping.ts'
import { authHere } from './command-line.ts'
import { importLines } from './import-lines.ts'
import { startTestService, type TestService } from './service.ts'
import { addPausedReceiver, storedEvents } from './upstreams/paused-receiver.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
const LOCAL = { AUTH_EGRESS_ALLOW_CIDRS: '127.0.0.0/8' }

let service: TestService
let receiver: Receiver
beforeAll(async () => {
  service = await startTestService(LOCAL)
})
afterAll(() => service.close())
beforeEach(async () => {
  receiver = await startReceiver()
  await service.deps.pool.query('delete from webhooks')
  await service.deps.pool.query('delete from webhook_deliveries')
})
afterEach(() => receiver.close())

const post = (path: string, body: object = {}) => service.post(`/admin/webhooks${path}`, body, service.admin)
const get = async (path: string) => (await service.get(`/admin/webhooks${path}`, service.admin)).body
const delivered = (id: string, count: number) =>
  expect
    .poll(async () => (await get(`/${id}/deliveries`)).deliveries.map(({ state }: { state: string }) => state))
    .toEqual(Array(count).fill('delivered'))
const newEmail = () => `user-${Math.random().toString(36).slice(2)}@example.com`
const newUser = () => service.post('/admin/users', { email: newEmail() }, service.admin)

test('a receiver is added, listed, changed and deleted, and its secret is shown once', async () => {
  const { status, body } = await post('', { url: receiver.url, events: ['user.*', 'user.*'], description: 'billing' })
  const shown = {
    ...{ id: expect.any(String), url: receiver.url, events: ['user.*'], enabled: true, description: 'billing' },
    created_at: service.clock.now().toISOString(),
  }
  expect([status, body]).toEqual([201, { ...shown, secret: expect.stringMatching(/^whsec_/) }])
  const { id } = body
  expect(await get('')).toEqual({ webhooks: [shown] })
  expect(await get(`/${id}`)).toEqual(shown)
  const { rows } = await service.deps.pool.query('select sealed_secrets from webhooks')
  expect(rows).toHaveLength(1)
  expect(JSON.stringify(rows)).not.toContain(body.secret)
  const changed = await service.put(`/admin/webhooks/${id}`, { events: ['*'], enabled: false }, service.admin)
  expect(changed.body).toEqual({ ...shown, events: ['*'], enabled: false })
  expect((await service.delete(`/admin/webhooks/${id}`, service.admin)).status).toBe(204)
  expect(await get('')).toEqual({ webhooks: [] })
})

const NOT_PUBLIC = 'url must be an https address of a public server, or lead to AUTH_EGRESS_ALLOW_CIDRS'

test.for<[object, string]>([
  [{}, 'url is required'],
  [{ url: 'not a url' }, NOT_PUBLIC],
  [{ url: 'http://93.184.216.34/' }, NOT_PUBLIC],
  [{ url: 'https://169.254.169.254/latest' }, NOT_PUBLIC],
  [{ url: 'https://auth.example/events' }, 'url must not be an address of this service'],
  [{ url: 'https://[::1]/' }, NOT_PUBLIC],
  [
    { url: 'https://127.0.0.1/', events: [] },
    'events must be *, groups such as user.*, or names of events such as user.created',
  ],
  [
    { url: 'https://127.0.0.1/', events: ['user.seen'] },
    'events must be *, groups such as user.*, or names of events such as user.created',
  ],
  [{ url: 'https://127.0.0.1/', secret: 'whsec_AAAA' }, 'secret must be whsec_ followed by base64 of 24 to 64 bytes'],
  [{ url: 'https://127.0.0.1/', description: 'x'.repeat(501) }, 'description must have at most 500 characters'],
])('a receiver of %j is refused', async ([input, message]) => {
  const { status, body } = await post('', input)
  expect([status, body.error_code, body.msg]).toEqual([400, 'validation_failed', message])
})

test('there are twenty receivers at most, also when many are added at once', async () => {
  const added = await Promise.all([...Array(24)].map(() => post('', { url: receiver.url, enabled: false })))
  expect(added.filter(({ status }) => status === 201)).toHaveLength(20)
  expect(added.find(({ status }) => status !== 201)?.body.msg).toBe('There can be at most 20 webhooks')
})

test('unknown ids are 404, and users and strangers are refused', async () => {
  const unknown = '11111111-1111-4111-8111-111111111111'
  const id = await addPausedReceiver(service)
  for (const path of [`/${unknown}`, '/x', `/${unknown}/deliveries`]) {
    expect((await service.get(`/admin/webhooks${path}`, service.admin)).status).toBe(404)
  }
  for (const path of [
    `/${unknown}/test`,
    `/x/rotate-secret`,
    `/${id}/deliveries/${unknown}/retry`,
    `/${id}/deliveries/x/retry`,
  ]) {
    expect((await post(path)).status).toBe(404)
  }
  const { auth } = await service.signedIn()
  expect((await service.get('/admin/webhooks', auth)).status).toBe(403)
  expect((await service.get('/admin/webhooks')).status).toBe(401)
})

test('a test event is delivered, whatever the receiver wants', async () => {
  const { body } = await post('', { url: receiver.url, events: ['user.deleted'] })
  const tested = await post(`/${body.id}/test`)
  expect([tested.status, tested.body]).toMatchObject([202, { event: 'webhook.test', state: 'waiting', user_id: null }])
  await expect.poll(() => receiver.received.length).toBe(1)
  expect(JSON.parse(receiver.received[0]?.body ?? '')).toMatchObject({ type: 'webhook.test', data: {} })
})

test('deliveries have pages by cursor, and one is sent again with its id', async () => {
  const { body } = await post('', { url: receiver.url, events: ['user.created'] })
  for (let n = 0; n < 3; n++) await newUser()
  await delivered(body.id, 3)
  const first = await service.get(`/admin/webhooks/${body.id}/deliveries?limit=2`, service.admin)
  const [, next = ''] = /<([^>]+)>; rel="next"/.exec(String(first.headers.link)) ?? []
  const second = await service.get(next, service.admin)
  const all = [...first.body.deliveries, ...second.body.deliveries]
  expect([all.length, second.headers.link]).toEqual([3, undefined])
  expect(all[0]).toEqual({
    ...{ id: expect.any(String), event: 'user.created', user_id: expect.any(String), state: 'delivered' },
    ...{ attempts: 1, status: 204, created_at: service.clock.now().toISOString() },
  })
  expect((await get(`/${body.id}/deliveries?cursor=x`)).msg).toBe('cursor is not valid')

  expect((await post(`/${body.id}/deliveries/${all[1].id}/retry`)).status).toBe(202)
  await expect.poll(() => receiver.received.length).toBe(4)
  expect(receiver.received[3]?.headers['webhook-id']).toBe(all[1].id)
})

describe('the receiver of the settings', () => {
  const start = (settings: Record<string, string>) =>
    startTestService(
      { AUTH_DATABASE_URL: service.deps.config.database.url, AUTH_WORKERS_ENABLED: 'false', ...LOCAL, ...settings },
      service.clock,
    )
  const own = (events: string) => ({
    AUTH_WEBHOOK_URL: receiver.url,
    AUTH_WEBHOOK_SECRET: SECRET,
    AUTH_WEBHOOK_EVENTS: events,
  })

  test('is stored at a start, changed by the next, and paused by the API', async () => {
    await (await start(own('user.*'))).close()
    await (await start(own('session.*'))).close()
    const { webhooks } = await get('')
    expect(webhooks).toMatchObject([{ url: receiver.url, events: ['session.*'], enabled: true }])
    const path = `/admin/webhooks/${webhooks[0].id}`
    expect((await service.put(path, { enabled: false }, service.admin)).body.enabled).toBe(false)
    const refused = [
      await service.put(path, { events: ['*'] }, service.admin),
      await service.delete(path, service.admin),
      await service.post(`${path}/rotate-secret`, {}, service.admin),
    ]
    expect(refused.map(({ status }) => status)).toEqual([422, 422, 422])
    // A restart leaves the pause.
    await (await start(own('session.*'))).close()
    expect((await get('')).webhooks[0].enabled).toBe(false)
  })

  test('waits after a start without them, and is deleted by an admin, or after three days', async () => {
    await (await start(own('user.*'))).close()
    await (await start({})).close()
    const [webhook] = (await get('')).webhooks
    expect(webhook).toMatchObject({ enabled: false, disabled_reason: 'unset' })
    await expect.poll(service.deps.events.isOn).toBe(true)
    await newUser()
    expect((await get(`/${webhook.id}/deliveries`)).deliveries).toMatchObject([{ state: 'waiting', attempts: 0 }])
    await (await start(own('user.*'))).close()
    service.deps.events.wake()
    await delivered(webhook.id, 1)
    await (await start({})).close()
    service.clock.advance({ seconds: 3 * 86_400 })
    await deleteExpired(service.deps, service.deps.log)
    expect((await get('')).webhooks).toHaveLength(1)
    service.clock.advance({ seconds: 1 })
    await deleteExpired(service.deps, service.deps.log)
    expect((await get('')).webhooks).toEqual([])
    await (await start(own('user.*'))).close()
    await (await start({})).close()
    expect((await service.delete(`/admin/webhooks/${webhook.id}`, service.admin)).status).toBe(204)
  })

  test('gets what waits at once when a start sets another address', async () => {
    receiver.answer = (response) => response.writeHead(503).end()
    await (await start(own('user.*'))).close()
    await expect.poll(service.deps.events.isOn).toBe(true)
    await newUser()
    const [webhook] = (await get('')).webhooks
    const failures = async () => (await service.deps.pool.query('select failures from webhooks')).rows[0].failures
    await expect.poll(failures).toBe(1)
    receiver.answer = (response) => response.writeHead(204).end()
    await (await start({ ...own('user.*'), AUTH_WEBHOOK_URL: `${receiver.url}/elsewhere` })).close()
    service.deps.events.wake()
    await delivered(webhook.id, 1)
  })

  test('keeps the pause of an admin that is under way at a start', async () => {
    await (await start(own('user.*'))).close()
    const { pool } = service.deps
    const client = await pool.connect()
    await client.query('begin')
    await client.query('update webhooks set enabled = false')
    const starting = start(own('session.*'))
    await expect.poll(() => countLockWaits(pool)).toBe(1)
    await client.query('commit')
    client.release()
    await (await starting).close()
    expect((await get('')).webhooks).toMatchObject([{ enabled: false, events: ['session.*'] }])
  })

  test('is stored later where a start could not, as soon as another process changes receivers', async () => {
    const { pool } = service.deps
    await pool.query(`create function refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$;
      create trigger refuse before insert on webhooks for each row execute function refuse()`)
    const replica = await start(own('user.*'))
    await pool.query('drop trigger refuse on webhooks')
    expect((await get('')).webhooks).toEqual([])
    await addPausedReceiver(service)
    await expect.poll(async () => (await get('')).webhooks.length).toBe(2)
    await replica.close()
  })

  test.for<[Record<string, string>, string]>([
    [{ AUTH_WEBHOOK_URL: 'https://app.example.com/' }, 'AUTH_WEBHOOK_URL needs AUTH_WEBHOOK_SECRET'],
    [{ AUTH_WEBHOOK_URL: 'app.example.com' }, 'AUTH_WEBHOOK_URL must be an absolute http or https URL'],
    [{ AUTH_WEBHOOK_SECRET: 'whsec_short' }, 'AUTH_WEBHOOK_SECRET must be whsec_ followed by base64'],
    [{ AUTH_WEBHOOK_EVENTS: 'user.seen' }, 'AUTH_WEBHOOK_EVENTS must be *, groups such as user.*'],
  ])('is refused as %j, at a start', async ([settings, problem]) => {
    await expect(start(settings)).rejects.toThrow(problem)
  })
})

test('a replay by the command line sends what was delivered since then again, in order', async () => {
  const { body } = await post('', { url: receiver.url, events: ['user.created'] })
  await newUser()
  await delivered(body.id, 1)
  service.clock.advance({ seconds: 7_200 })
  const since = service.clock.now().toISOString()
  for (let n = 0; n < 2; n++) await newUser()
  await delivered(body.id, 3)
  const run = (...args: string[]) =>
    authHere(['webhooks', 'replay', ...args], { AUTH_DATABASE_URL: service.deps.config.database.url })
  const { stdout, code } = await run('--since', since, '--webhook', body.id, '--json')
  expect([code, JSON.parse(stdout)]).toEqual([0, { events: 2 }])
  // The command writes by the machine's time, and the test's is another.
  await service.deps.pool.query(`update webhook_deliveries set next_at = $1 where state = 'waiting'`, [
    service.clock.now(),
  ])
  service.deps.events.wake()
  await expect.poll(() => receiver.received.length).toBe(5)
  const ids = receiver.received.map(({ headers }) => headers['webhook-id'])
  expect(ids.slice(3).toSorted()).toEqual(ids.slice(1, 3).toSorted())
  expect(ids).not.toContain(undefined)
  for (const args of [[], ['--since', 'yesterday'], ['--since', '1h', '--webhook', 'x']]) {
    expect((await run(...args)).code).not.toBe(0)
  }
})

test('without a receiver nothing is written, and the first change after its registration is an event', async () => {
  await service.deps.events.refresh()
  const { userId } = await service.signedIn()
  await service.put(`/admin/users/${userId}`, { user_metadata: { a: 1 } }, service.admin)
  expect(await storedEvents(service)).toEqual([])
  await addPausedReceiver(service)
  await service.put(`/admin/users/${userId}`, { user_metadata: { a: 2 } }, service.admin)
  expect((await storedEvents(service)).map(({ event }) => event)).toEqual(['user.updated'])
})

test('replicas learn from a notification what receivers want, and write the events of the next changes', async () => {
  await service.deps.pool.query('delete from event_users')
  const settings = { AUTH_DATABASE_URL: service.deps.config.database.url, AUTH_WORKERS_ENABLED: 'false', ...LOCAL }
  const replicas = await Promise.all([1, 2].map(() => startTestService(settings, service.clock)))
  expect(replicas.map(({ deps }) => deps.events.isOn())).toEqual([false, false])
  const id = await addPausedReceiver(service, ['user.deleted'])
  for (const { deps } of replicas) await expect.poll(deps.events.isOn).toBe(true)
  const create = () =>
    Promise.all(replicas.map((replica) => replica.post('/admin/users', { email: newEmail() }, replica.admin)))
  await create()
  expect(await storedEvents(service)).toEqual([])
  await service.put(`/admin/webhooks/${id}`, { events: ['user.created'] }, service.admin)
  for (const { deps } of replicas) {
    await expect.poll(() => wantsEvent(deps.db, 'user.created')).toBe(true)
  }
  await create()
  expect((await storedEvents(service)).map(({ event }) => event)).toEqual(['user.created', 'user.created'])
  for (const replica of replicas) await replica.close()
})

test('a receiver that is added during an earlier read of the receivers is known afterwards', async () => {
  const { events } = service.deps
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const { query } = pg.Client.prototype
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(async function (
    this: pg.Client,
    ...given: unknown[]
  ) {
    const [asked] = given as [string | { text: string }]
    const isRead = (typeof asked === 'string' ? asked : asked.text).includes('unnest(events)')
    const found = await Reflect.apply(query, this, given)
    if (!isRead) return found
    spy.mockRestore()
    held.resolve()
    await released.promise
    return found
  } as never)
  const earlier = events.refresh()
  await held.promise
  await service.deps.pool.query(
    `insert into webhooks (id, url, description, events, sealed_secrets, created_at, updated_at)
      values (gen_random_uuid(), 'https://receiver.example/', '', '{user.deleted}', '{}', now(), now())`,
  )
  const later = events.refresh()
  // If it reads at once, its answer comes first.
  await Promise.race([later, service.deps.pool.query('select pg_sleep(0.05)')])
  released.resolve()
  await Promise.all([earlier, later])
  expect(wantsEvent(service.deps.db, 'user.deleted')).toBe(true)
})

test('an import learns before each batch what receivers want', async () => {
  await addPausedReceiver(service, ['user.created'])
  const { events, pool } = service.deps
  await pool.query(`update webhooks set disabled_reason = 'gone'`)
  await events.refresh()
  await pool.query('update webhooks set disabled_reason = null')
  await importLines(service, [{ email: newEmail() }])
  expect((await storedEvents(service)).map(({ event }) => event)).toEqual(['user.created'])
})
