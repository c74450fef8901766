import { readFile } from 'node:fs/promises'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { type Receiver, startReceiver } from '@services/common/testing/http/receiver'
import { sql, type Updateable } from 'kysely'
import { Webhook } from 'standardwebhooks'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { USUAL_SCOPES } from '../src/core/tokens/scopes.ts'
import { deliverWebhook } from '../src/core/webhooks/deliver-webhook.ts'
import { takeDue } from '../src/core/webhooks/deliveries.store.ts'
import { waitAfter } from '../src/core/webhooks/webhook-queue.ts'
import { ALBUM_EVENTS, CLIP_EVENTS, type DB, type WebhookEvent } from '../src/db/tables.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { TIME_LIMITS } from '../src/time-limits.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { scrambled } from './scrambled.ts'
import { idIn, startTestService, type TestService } from './service.ts'

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`
let receiver: Receiver
beforeEach(async () => {
  receiver = await startReceiver()
})
afterEach(() => receiver.close())

let widths = 20
const newGif = () => gif(widths++, 10, [{ delay: 10 }])
const json = (token: string) => ({ token, 'content-type': 'application/json' })

function postTo(service: TestService, path: string, body: unknown, token = service.token) {
  return service.call('POST', path, { body: JSON.stringify(body), headers: json(token) })
}

async function register(service: TestService, url: string, options: object = {}, token = service.token) {
  const { status, body } = await postTo(service, '/webhooks', { url, secret: SECRET, ...options }, token)
  expect(status).toBe(201)
  return body.success.id as string
}

async function logOf(service: TestService, id: string) {
  return (await service.get(`/webhooks/${id}/deliveries`, { token: service.token })).body.success.items
}

const events = () => receiver.received.map(({ body }) => JSON.parse(body))

describe('with a worker', () => {
  let service: TestService
  beforeAll(async () => {
    service = await startTestService()
  })
  afterAll(() => service.close())

  test('a receiver gets signed events about the clips of its token, and of no other', async () => {
    const { token } = await service.newToken()
    await register(service, `${receiver.url}/hook`, {}, token)
    const picture = newGif()
    const added = await service.upload(picture, [], { token })
    await service.readyAlike(newGif())
    await expect.poll(() => receiver.received.length).toBe(1)
    const [first] = receiver.received
    expect(first?.path).toBe('/hook')
    expect(new Webhook(SECRET).verify(first?.body ?? '', first?.headers as Record<string, string>)).toEqual({
      type: 'media.ready',
      timestamp: service.clock.now().toISOString(),
      data: { id: idIn(added), state: 'ready', ...added.body.success },
    })
    expect(first?.headers['user-agent']).toMatch(/^media\//)
    expect(first?.headers.token).toBeUndefined()

    // Bytes that were here before are ready at once.
    const again = await service.upload(picture, [], { token })
    const noise = scrambled(await readFile(await clip('small.mp4')))
    expect((await service.upload(noise, [], { token })).status).toBe(422)
    await service.call('DELETE', `/media/${idIn(added)}`, { headers: { token } })
    expect((await service.call('DELETE', `/media/${idIn(added)}`, { headers: { token } })).status).toBe(410)
    await expect.poll(() => receiver.received.length).toBe(4)
    expect(events().map(({ type, data }) => [type, data.id, data.failure?.code])).toEqual(
      expect.arrayContaining([
        ['media.ready', idIn(again), undefined],
        ['media.failed', expect.any(String), 'corrupt_media'],
        ['media.deleted', idIn(added), undefined],
      ]),
    )
    expect(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size).toBe(4)
  })

  test('a receiver gets only the events it registered for, and none after its deletion', async () => {
    const { token } = await service.newToken()
    const id = await register(service, receiver.url, { events: ['media.deleted'] }, token)
    const [first, second] = [
      await service.readyAlike(newGif(), [], { token }),
      await service.readyAlike(newGif(), [], { token }),
    ]
    const remove = (answer: typeof first) => service.call('DELETE', `/media/${idIn(answer)}`, { headers: { token } })
    await remove(first)
    await expect.poll(() => receiver.received.length).toBe(1)
    expect(events()[0]).toMatchObject({ type: 'media.deleted', data: { id: idIn(first), state: 'deleted' } })
    expect((await service.call('DELETE', `/webhooks/${id}`, { headers: { token } })).status).toBe(204)
    await remove(second)
    expect((await service.deps.pool.query('select from webhook_deliveries where webhook_id = $1', [id])).rowCount).toBe(
      0,
    )
  })

  test('a receiver that hangs does not delay other receivers', async () => {
    const other = await startReceiver()
    receiver.answer = () => {}
    const [slow, quick] = [await service.newToken(), await service.newToken()]
    await register(service, receiver.url, {}, slow.token)
    await register(service, other.url, {}, quick.token)
    // Ready already, so that each upload is an event at once; far more than there are slots.
    const picture = newGif()
    await service.readyAlike(picture)
    await Promise.all(
      [1, 2, 3, 4].map(async () => {
        for (let n = 0; n < 5; n++) await service.upload(picture, [], { token: slow.token })
      }),
    )
    await expect.poll(() => receiver.received.length).toBeGreaterThan(0)
    await service.upload(picture, [], { token: quick.token })
    await expect.poll(() => other.received.length).toBe(1)
    // The slow receiver got at most two deliveries in all this time.
    expect(receiver.received.length).toBeLessThanOrEqual(2)
    const { rows } = await service.deps.pool.query(
      `select count(*)::int from webhook_deliveries join webhooks on webhooks.id = webhook_id
       where token_id = $1 and webhook_deliveries.state = 'pending'`,
      [slow.id],
    )
    expect(rows[0].count).toBe(20)
    other.close()
  })
})

test('a token whose receivers all hang does not delay those of another', async () => {
  // Limit longer than the test: an event that arrives meanwhile waited for no attempt to end.
  const service = await startTestService({}, { timeLimits: { webhookAnswerMs: 600_000 } })
  const other = await startReceiver()
  receiver.answer = () => {}
  const [slow, quick] = [await service.newToken(), await service.newToken()]
  for (let n = 0; n < 10; n++) await register(service, `${receiver.url}/${n}`, {}, slow.token)
  await register(service, other.url, {}, quick.token)
  const picture = newGif()
  await service.readyAlike(picture)
  await service.upload(picture, [], { token: slow.token })
  await expect.poll(() => receiver.received.length).toBe(3)
  for (let n = 1; n <= 4; n++) {
    await service.upload(picture, [], { token: quick.token })
    await expect.poll(() => other.received.length).toBe(n)
  }
  expect(receiver.received).toHaveLength(3)
  receiver.close()
  other.close()
  await service.close()
})

describe('one attempt after another', () => {
  let service: TestService
  let id: string
  beforeAll(async () => {
    service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
  })
  afterAll(() => service.close())
  beforeEach(async () => {
    await service.deps.pool.query('delete from webhooks')
    id = await register(service, `${receiver.url}/hook`)
    await newEvent()
  })

  /** Each in a moment of its own, so that the newest is the last. */
  const newEvent = async () => {
    service.clock.advance({ seconds: 1 })
    const added = idIn(await service.upload(newGif()))
    await service.call('DELETE', `/media/${added}`, { headers: { token: service.token } })
  }
  const latest = async () => (await logOf(service, id))[0]
  const rowOf = async () => (await service.deps.pool.query('select * from webhooks where id = $1', [id])).rows[0]
  /** Does the job of the newest delivery, when its time has come. */
  const attempt = async (timeLimits = {}) => {
    const { id: deliveryId, attempts, next_attempt_at: next } = await latest()
    service.clock.advance({ seconds: Math.max(0, (Date.parse(next) - service.clock.now().getTime()) / 1000) })
    const deps = { ...service.deps, timeLimits: { ...service.deps.timeLimits, ...timeLimits } }
    await deliverWebhook(deps, { data: { deliveryId, attempt: attempts } })
    return latest()
  }

  test.each<[string, Receiver['answer'], object]>([
    ['says 500', (response) => response.writeHead(500).end(), { last_status: 500, last_error: 'status' }],
    ['says 404', (response) => response.writeHead(404).end('x'), { last_status: 404, last_error: 'status' }],
    [
      'leads elsewhere',
      (response) => response.writeHead(302, { location: '/elsewhere' }).end(),
      { last_status: 302, last_error: 'redirect' },
    ],
    ['hangs up', (response) => response.destroy(), { last_status: null, last_error: 'unreachable' }],
    [
      'speaks no HTTP',
      (response) => response.socket?.end('garbage\r\n\r\n'),
      { last_status: null, last_error: 'bad_response' },
    ],
  ])('a receiver that %s has failed, and gets the event again with the same id', async (_how, answer, seen) => {
    receiver.answer = answer
    expect(await attempt()).toMatchObject({ state: 'pending', attempts: 1, ...seen })
    receiver.answer = (response) => response.writeHead(200).end('x'.repeat(100_000))
    expect(await attempt()).toMatchObject({ state: 'delivered', attempts: 2, last_status: 200, last_error: null })
    expect(receiver.received.map(({ path }) => path)).toEqual(['/hook', '/hook'])
    const [first, second] = receiver.received
    expect(second?.headers['webhook-id']).toBe(first?.headers['webhook-id'])
    expect(second?.body).toBe(first?.body)
    expect(await rowOf()).toMatchObject({ failures: 0, failing_since: null, paused_until: null })
  })

  test('a receiver that does not answer within five seconds has failed, and gets a pause', async () => {
    expect(TIME_LIMITS.webhookAnswerMs).toBe(5_000)
    receiver.answer = () => {}
    expect(await attempt({ webhookAnswerMs: 300 })).toMatchObject({
      ...{ state: 'pending', last_status: null, last_error: 'timeout' },
    })
    await newEvent()
    const { id: deliveryId } = await latest()
    await deliverWebhook(service.deps, { data: { deliveryId, attempt: 0 } })
    expect(receiver.received.map(({ headers }) => headers['webhook-id'])).not.toContain(`msg_${deliveryId}`)
    const postponed = await latest()
    expect(postponed).toMatchObject({ state: 'pending', attempts: 0 })
    expect(Date.parse(postponed.next_attempt_at)).toBeGreaterThan(service.clock.now().getTime() + 10_000)
    receiver.answer = (response) => response.writeHead(204).end()
    expect(await attempt()).toMatchObject({ state: 'delivered' })
  })

  test('a job that runs twice is one attempt', async () => {
    const { id: deliveryId } = await latest()
    const job = { data: { deliveryId, attempt: 0 } }
    await Promise.all([deliverWebhook(service.deps, job), deliverWebhook(service.deps, job)])
    await deliverWebhook(service.deps, job)
    expect(receiver.received).toHaveLength(1)
  })

  test('an event is attempted for a day, less and less often, and then marked as failed', async () => {
    receiver.answer = (response) => response.writeHead(503).end()
    const start = service.clock.now().getTime()
    let last = await attempt()
    while (last.state === 'pending') last = await attempt()
    expect(last).toMatchObject({ state: 'failed', last_status: 503, next_attempt_at: null })
    expect(receiver.received.length).toBe(last.attempts)
    const hours = (service.clock.now().getTime() - start) / 3_600_000
    expect([last.attempts, Math.round(hours)]).toEqual([16, 22])
    expect([1, 2, 3, 20].map(waitAfter)).toEqual([10_000, 20_000, 40_000, 14_400_000])

    receiver.answer = (response) => response.writeHead(204).end()
    const replayed = await service.call('POST', `/webhooks/${id}/deliveries/${last.id}/replay`, {
      headers: { token: service.token },
    })
    expect([replayed.status, replayed.body.success.state]).toEqual([202, 'pending'])
    expect(await attempt()).toMatchObject({ state: 'delivered', attempts: 17 })
  })

  test('a receiver that fails for days is disabled, one that answers 410 at once; a replay enables it', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    await attempt()
    service.clock.advance({ seconds: 5 * 86_400 + 1 })
    await newEvent()
    expect(await attempt()).toMatchObject({ state: 'failed', attempts: 1 })
    const list = await service.get('/webhooks', { token: service.token })
    expect(Object.keys(list.body.success.items[0]).sort()).toEqual([
      'created_at',
      'disabled_at',
      'events',
      'failing_since',
      'id',
      'url',
    ])
    const ofDelivery = [
      'attempts',
      'created_at',
      'id',
      'last_attempt_at',
      'last_error',
      'last_status',
      'next_attempt_at',
    ]
    expect(Object.keys(await latest()).sort()).toEqual([...ofDelivery, 'payload', 'state', 'type'])
    expect(list.body.success.items[0].disabled_at).toBe(service.clock.now().toISOString())
    const before = (await logOf(service, id)).length
    await newEvent()
    expect((await logOf(service, id)).length).toBe(before)

    const { id: delivery } = await latest()
    const replay = () =>
      service.call('POST', `/webhooks/${id}/deliveries/${delivery}/replay`, { headers: { token: service.token } })
    await replay()
    expect(await rowOf()).toMatchObject({ disabled_at: null, failing_since: null })
    receiver.answer = (response) => response.writeHead(410).end()
    expect(await attempt()).toMatchObject({ state: 'failed', last_status: 410 })
    expect((await rowOf()).disabled_at).not.toBeNull()
  })

  /** Begins an attempt at the newest event; the receiver answers with the status that is given later. */
  async function beginAttempt() {
    const { promise, resolve: answer } = Promise.withResolvers<number>()
    receiver.answer = (response) => void promise.then((status) => response.writeHead(status).end())
    const { id: deliveryId, attempts } = await latest()
    const before = receiver.received.length
    const ended = deliverWebhook(service.deps, { data: { deliveryId, attempt: attempts } })
    await expect.poll(() => receiver.received.length).toBe(before + 1)
    return { deliveryId, answer, ended }
  }

  test('a receiver that wants no more events stays disabled, whatever another attempt ends with', async () => {
    const other = await beginAttempt()
    await newEvent()
    const gone = await beginAttempt()
    gone.answer(410)
    await gone.ended
    other.answer(204)
    await other.ended
    expect((await rowOf()).disabled_at).not.toBeNull()
    expect((await logOf(service, id)).map(({ state }: { state: string }) => state)).toEqual(['failed', 'delivered'])
  })

  test('an event that is sent again in its last attempt is not given up with that', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    await attempt()
    service.clock.advance({ seconds: 86_400 - 1 })
    const last = await beginAttempt()
    const path = `/webhooks/${id}/deliveries/${last.deliveryId}/replay`
    expect((await service.call('POST', path, { headers: { token: service.token } })).status).toBe(202)
    last.answer(500)
    await last.ended
    expect(await latest()).toMatchObject({ state: 'pending', last_status: 500 })
  })

  /** Runs the queries in a transaction of its own, then `work`, and ends the transaction when so many wait for it. */
  async function whileLocked<T>(queries: string[], work: (waiting: (most: number) => Promise<void>) => Promise<T>[]) {
    const { pool } = service.deps
    const client = await pool.connect()
    const waiting = async (most: number) => expect.poll(() => countLockWaits(pool)).toBe(most)
    try {
      await client.query('begin')
      for (const query of queries) await client.query(query)
      const working = work(waiting)
      await waiting(working.length)
      await client.query('commit')
      return await Promise.all(working)
    } finally {
      await client.query('rollback')
      client.release()
    }
  }

  const headers = () => ({ token: service.token })

  test('deleting a webhook while its event is replayed causes no error', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    const { id: delivery } = await attempt()
    const answers = await whileLocked([`select from webhooks where id = '${id}' for update`], (waiting) => {
      const deleting = service.call('DELETE', `/webhooks/${id}`, { headers: headers() })
      const replaying = waiting(1).then(() =>
        service.call('POST', `/webhooks/${id}/deliveries/${delivery}/replay`, { headers: headers() }),
      )
      return [deleting, replaying]
    })
    expect(answers.map(({ status }) => status)).toEqual([204, 404])
  })

  test('deleting a webhook while its event is delivered causes no error', async () => {
    receiver.answer = (response) => response.writeHead(500).end()
    const { id: deliveryId, attempts } = await attempt()
    receiver.answer = (response) => response.writeHead(204).end()
    const lock = [`select from webhooks where id = '${id}' for update`]
    await whileLocked<unknown>(lock, (waiting) => [
      service.call('DELETE', `/webhooks/${id}`, { headers: headers() }).then(({ status }) => expect(status).toBe(204)),
      waiting(1).then(() => deliverWebhook(service.deps, { data: { deliveryId, attempt: attempts } })),
    ])
    expect((await service.deps.pool.query('select from webhook_deliveries')).rowCount).toBe(0)
  })

  test('a clip can be deleted while its webhook is being deleted', async () => {
    const added = idIn(await service.upload(newGif()))
    const [deleted] = await whileLocked([`delete from webhooks where id = '${id}'`], () => [
      service.call('DELETE', `/media/${added}`, { headers: headers() }),
    ])
    expect(deleted?.status).toBe(204)
  })

  test('deliveries that wait for a slot at a slow receiver cost no jobs: a finished one starts the next', async () => {
    for (let n = 0; n < 5; n++) await newEvent()
    const { pool } = service.deps
    const jobs = async () =>
      (await pool.query(`select data from media_queue.job where name = 'webhook' and state = 'created'`)).rows.map(
        ({ data }) => data.deliveryId,
      )
    const log: { id: string }[] = (await logOf(service, id)).toReversed()
    const ids = log.map((delivery) => delivery.id)
    await pool.query('delete from media_queue.job')
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
    receiver.answer = (response) => void answered.then(() => response.writeHead(204).end())
    const deliver = (deliveryId = '') => deliverWebhook(service.deps, { data: { deliveryId, attempt: 0 } })
    const slow = [deliver(ids[0]), deliver(ids[1])]
    await expect.poll(() => receiver.received.length).toBe(2)
    for (let round = 0; round < 3; round++) await Promise.all(ids.slice(2).map(deliver))
    expect(await jobs()).toEqual([])
    answer()
    await Promise.all(slow)
    // The first to finish sees one free slot, the last sees both.
    const called = await jobs()
    expect([2, 3]).toContain(called.length)
    expect(called.sort()).toEqual(ids.slice(2, 2 + called.length).sort())
    for (const next of ids.slice(2)) await deliver(next)
    expect((await logOf(service, id)).map(({ state }: { state: string }) => state)).toEqual(Array(6).fill('delivered'))
  })

  test('deliveries never exceed the free slots, whatever join PostgreSQL chooses', async () => {
    for (let n = 0; n < 3; n++) await newEvent()
    const now = service.clock.now()
    const called = await service.deps.db.transaction().execute(async (trx) => {
      // A nested loop is left, as statistics of a small table may have it chosen.
      for (const way of ['hashjoin', 'mergejoin', 'hashagg', 'sort', 'material', 'memoize', 'indexscan', 'bitmapscan'])
        await sql`select set_config(${`enable_${way}`}, 'off', true)`.execute(trx)
      return takeDue(trx, id, { now, until: new Date(now.getTime() + 60_000), limit: 1 })
    })
    expect(called).toHaveLength(1)
  })

  test('an attempt whose process died is repeated by another one', async () => {
    const { id: deliveryId } = await latest()
    await service.deps.pool.query('update webhook_deliveries set attempts = 1, next_attempt_at = $1', [
      new Date(service.clock.now().getTime() + 300_000),
    ])
    await service.deps.pool.query(`delete from media_queue.job where name = 'webhook'`)
    const jobs = async () =>
      (await service.deps.pool.query(`select data from media_queue.job where name = 'webhook'`)).rows
    service.clock.advance({ seconds: 500 })
    await cleanUp(service.deps)
    expect(await jobs()).toEqual([])
    service.clock.advance({ seconds: 101 })
    await cleanUp(service.deps)
    await cleanUp(service.deps)
    expect(await jobs()).toEqual([{ data: { deliveryId, attempt: 1 } }])
  })

  test('a name that resolves to a private address gets no delivery', async () => {
    await service.deps.pool.query(`update webhooks set url = 'http://169.254.169.254/latest'`)
    expect(await attempt()).toMatchObject({ state: 'pending', last_status: null, last_error: 'forbidden_address' })
  })

  test('the log has pages, and is deleted after a month', async () => {
    await newEvent()
    await newEvent()
    const page = async (query: string) =>
      (await service.get(`/webhooks/${id}/deliveries?limit=2${query}`, { token: service.token })).body.success
    const first = await page('')
    const second = await page(`&cursor=${first.next_cursor}`)
    expect([first.items.length, second.items.length, second.next_cursor]).toEqual([2, 1, null])
    expect(new Set([...first.items, ...second.items].map((item) => item.id)).size).toBe(3)
    await attempt()
    service.clock.advance({ seconds: 31 * 86_400 })
    await cleanUp(service.deps)
    expect((await page('')).items).toHaveLength(2)
  })

  test('the webhooks of a revoked or expired token get no more events', async () => {
    const admin = (await service.newToken({ scopes: ['admin'] })).token
    const expiresAt = new Date(service.clock.now().getTime() + 3_600_000)
    const told = async (hook: string) =>
      (await service.deps.pool.query('select type from webhook_deliveries where webhook_id = $1', [hook])).rows
    for (const end of ['revoked', 'expired', undefined]) {
      const owner = await service.newToken(end === 'expired' ? { expiresAt } : {})
      const hook = await register(service, `${receiver.url}/hook`, {}, owner.token)
      const clipId = idIn(await service.upload(newGif(), [], { token: owner.token }))
      if (end === 'revoked') await service.call('DELETE', `/tokens/${owner.id}`, { headers: { token: admin } })
      if (end === 'expired') service.clock.advance({ seconds: 3_600 })
      expect((await service.call('DELETE', `/media/${clipId}`, { headers: { token: admin } })).status).toBe(204)
      expect(await told(hook)).toEqual(end ? [] : [{ type: 'media.deleted' }])
    }
  })

  test.for<[string, Updateable<DB['api_tokens']>, WebhookEvent, string | null]>([
    ['is revoked', { revoked_at: new Date() }, 'media.deleted', 'token_ended'],
    ['expires', { expires_at: new Date() }, 'media.deleted', 'token_ended'],
    ['loses the scope admin', { scopes: USUAL_SCOPES }, 'media.reported', 'insufficient_scope'],
    ['keeps its rights', { name: 'kept' }, 'media.deleted', null],
  ])('a token %s while an event waits: the next attempt follows its rights', async ([, changes, type, error]) => {
    const owner = await service.newToken({ scopes: ['admin'] })
    const hook = await register(service, `${receiver.url}/hook`, { events: [type] }, owner.token)
    const clipId = idIn(await service.upload(newGif(), [], { token: owner.token }))
    const form = { body: new URLSearchParams({ reason: 'other' }) }
    if (type === 'media.reported') await service.call('POST', `/gif/${clipId}/report`, form)
    else await service.call('DELETE', `/media/${clipId}`, { headers: { token: owner.token } })
    // A first attempt fails; the event waits for the second.
    receiver.answer = (response) => response.writeHead(500).end()
    const pending = () =>
      service.deps.db
        .selectFrom('webhook_deliveries')
        .selectAll()
        .where('webhook_id', '=', hook)
        .executeTakeFirstOrThrow()
    const attempt = async () => {
      const { id: deliveryId, attempts } = await pending()
      await deliverWebhook(service.deps, { data: { deliveryId, attempt: attempts } })
    }
    await attempt()
    expect(receiver.received).toHaveLength(1)
    await service.deps.db.updateTable('api_tokens').set(changes).where('id', '=', owner.id).execute()
    service.clock.advance({ seconds: 60 })
    receiver.answer = (response) => response.writeHead(204).end()
    await attempt()
    expect(receiver.received).toHaveLength(error ? 1 : 2)
    expect(await pending()).toMatchObject({ state: error ? 'failed' : 'delivered', last_error: error })
  })

  test('only its token can use a webhook, with the scopes read and write', async () => {
    const stranger = await service.newToken({ scopes: ['admin'] })
    const { id: delivery } = await latest()
    const paths = ['', '/deliveries', `/deliveries/${delivery}/replay`].map((end) => `/webhooks/${id}${end}`)
    const as = async (token: string) => [
      (await service.call('DELETE', paths[0] as string, { headers: { token } })).status,
      (await service.get(paths[1] as string, { token })).status,
      (await service.call('POST', paths[2] as string, { headers: { token } })).status,
    ]
    expect(await as(stranger.token)).toEqual([404, 404, 404])
    expect(await as((await service.newToken({ scopes: ['delete'] })).token)).toEqual([403, 403, 403])
    expect((await service.get('/webhooks', { token: stranger.token })).body.success.items).toEqual([])
    const wrong = `/webhooks/${id}/deliveries/${id}/replay`
    expect((await service.call('POST', wrong, { headers: { token: service.token } })).status).toBe(404)
  })

  test.each([
    [{}, 'url'],
    [{ url: 'ftp://127.0.0.1/' }, 'url'],
    [{ url: 'https://ada:secret@example.com/' }, 'url'],
    [{ url: 'http://10.0.0.1/' }, 'url'],
    [{ url: 'http://[::ffff:169.254.169.254]/' }, 'url'],
    [{ url: 'https://media.example/hook' }, 'url'],
    [{ url: 'https://example.com/', events: [] }, 'events'],
    [{ url: 'https://example.com/', events: ['media.seen'] }, 'events.0'],
    [{ url: 'https://example.com/', secret: 'hunter2' }, 'secret'],
    [{ url: 'https://example.com/', secret: `whsec_${Buffer.alloc(23).toString('base64')}` }, 'secret'],
  ])('a webhook of %j is refused', async (body, param) => {
    const refused = await postTo(service, '/webhooks', body)
    expect([refused.status, refused.body.error.code, refused.body.error.param]).toEqual([422, 'invalid_field', param])
  })
})

test('a secret is shown once, generated if none is given, and sealed if there is a key; a token has ten webhooks at most', async () => {
  const key = 'an encryption key of some length'
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_ENCRYPTION_KEY: key })
  const made = await postTo(service, '/webhooks', { url: receiver.url })
  expect(made.body.success).toMatchObject({ events: [...CLIP_EVENTS, ...ALBUM_EVENTS] })
  const { secret, id } = made.body.success
  expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{32}$/)
  expect(made.headers.get('cache-control')).toBe('no-store')
  expect((await service.get('/webhooks', { token: service.token })).text).not.toContain(secret)
  const { rows } = await service.deps.pool.query('select * from webhooks')
  expect(JSON.stringify(rows)).not.toContain(secret.slice(6))

  const added = idIn(await service.upload(newGif(), [], { prefer: 'respond-async' }))
  await service.call('DELETE', `/media/${added}`, { headers: { token: service.token } })
  const [{ id: deliveryId }] = await logOf(service, id)
  await deliverWebhook(service.deps, { data: { deliveryId, attempt: 0 } })
  const [first] = receiver.received
  const verified = new Webhook(secret).verify(first?.body ?? '', first?.headers as Record<string, string>)
  expect(verified).toMatchObject({ type: 'media.deleted' })

  const more = await Promise.all(Array.from({ length: 11 }, () => postTo(service, '/webhooks', { url: receiver.url })))
  expect(more.filter(({ status }) => status === 201)).toHaveLength(9)
  await service.close()
})
