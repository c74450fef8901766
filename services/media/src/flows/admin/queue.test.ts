// The queue and the dead letters, as administrators see them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { gif } from '../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../test/service.ts'

let service: TestService
let admin: { token: string; id: string }
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  admin = await service.newToken({ scopes: ['admin'] })
})
afterAll(() => service.close())

const as = (token: string, method: string, path: string) => service.call(method, path, { headers: { token } })
const read = async (path: string) => (await as(admin.token, 'GET', path)).body.success
const query = async (text: string, values: unknown[] = []) => (await service.deps.pool.query(text, values)).rows

let width = 50
const waiting = async (token = service.token) =>
  idIn(await service.upload(gif(width++, 12, [{ delay: 10 }]), [], { token, prefer: 'respond-async' }))
const sourceOf = async (clip: string) =>
  (await query('select source_id, token_id from clips where id = $1', [clip]))[0] as Record<string, string>

/** Writes a dead letter as pg-boss does. */
const deadJob = async (name: string, data: object, tenant: string | null, output: object | null) =>
  (
    await query(
      `insert into media_queue.job (name, data, group_id, source_name, source_output, source_retry_count)
        values ($1 || '.dead', $2, $3, $1, $4, 5) returning id`,
      [name, data, tenant, output],
    )
  )[0].id as string

async function failedDelivery(url = 'https://hooks.example/secret-path?key=secret'): Promise<string> {
  const { id: owner } = await service.newToken()
  const [webhook, delivery] = [crypto.randomUUID(), crypto.randomUUID()]
  const now = service.clock.now()
  await query(
    `insert into webhooks (id, token_id, url, events, secret, created_at, disabled_at)
      values ($1, $2, $3, '{media.ready}', 'plain', $4, $4)`,
    [webhook, owner, url, now],
  )
  await query(
    `insert into webhook_deliveries (id, webhook_id, type, payload, state, attempts, give_up_at, last_status, last_error, created_at)
      values ($1, $2, 'media.ready', '{"data": {"id": "clip1234"}}', 'failed', 16, $3, 500, 'status', $3)`,
    [delivery, webhook, now],
  )
  return delivery
}

const actsOn = (target: string) =>
  query('select action, token_id, details from audit_entries where target = $1', [target])

test('clips that wait are counted by token, and a clip that is made shows progress and machine', async () => {
  const other = await service.newToken()
  const [made] = [await waiting(), await waiting(), await waiting(other.token)]
  const { source_id: id, token_id: owner } = await sourceOf(made as string)
  await query("update media_queue.job set state = 'active', started_on = now() where data ->> 'sourceId' = $1", [id])
  await query("update sources set progress = 0.4, worker = 'worker-1' where id = $1", [id])
  const { queues, waiting: byToken, making } = await read('/queue')
  expect(queues[0]).toEqual({ name: 'transcode', waiting: 2 })
  expect(byToken).toHaveLength(2)
  expect(byToken).toContainEqual({ token: { id: other.id, name: 'test' }, clips: 1 })
  expect(making).toEqual([
    {
      ...{ clip_id: made, token: { id: owner, name: 'test' }, progress: 0.4, machine: 'worker-1' },
      started_at: expect.any(String),
    },
  ])
})

describe('dead letters', () => {
  test('are jobs and deliveries, newest first and page by page, without secrets', async () => {
    const clip = await waiting()
    const { source_id: sourceId, token_id: owner } = await sourceOf(clip)
    const job = await deadJob('scan', { sourceId, attempts: 0, since: 0 }, owner as string, { message: 'no answer' })
    const lost = await deadJob('extras', { sourceId }, null, null)
    const delivery = await failedDelivery()
    const all = await read('/queue/dead')
    expect(all.items.map(({ id }: { id: string }) => id).sort()).toEqual([job, lost, delivery].sort())
    const found = (id: string) => all.items.find((item: { id: string }) => item.id === id)
    expect(found(job)).toEqual({
      ...{ id: job, kind: 'job', name: 'scan', at: expect.any(String), attempts: 6, reason: 'no answer' },
      ...{ token: { id: owner, name: 'test' }, clip_id: clip, receiver: null },
    })
    expect(found(lost)).toMatchObject({ name: 'extras', reason: null, token: null })
    expect(found(delivery)).toMatchObject({
      ...{ kind: 'delivery', name: 'media.ready', attempts: 16, reason: 'status 500' },
      ...{ clip_id: 'clip1234', receiver: 'https://hooks.example' },
    })
    expect(JSON.stringify(all)).not.toContain('secret')
    const seen: string[] = []
    for (let cursor = ''; ; ) {
      const page = await read(`/queue/dead?limit=1${cursor}`)
      seen.push(...page.items.map(({ id }: { id: string }) => id))
      if (!page.next_cursor) break
      cursor = `&cursor=${page.next_cursor}`
    }
    expect(seen).toEqual(all.items.map(({ id }: { id: string }) => id))
    expect((await as(admin.token, 'GET', '/queue/dead?cursor=x')).status).toBe(422)
  })

  test('a job that is tried again waits in its queue, in the turn of its tenant, once', async () => {
    const { source_id: sourceId, token_id: owner } = await sourceOf(await waiting())
    const data = { sourceId, attempts: 0, since: 0 }
    const id = await deadJob('scan', data, owner as string, null)
    const retry = () => as(admin.token, 'POST', `/queue/dead/${id}/retry`)
    expect((await Promise.all([retry(), retry()])).map(({ status }) => status).sort()).toEqual([202, 404])
    const jobs = await query("select data, group_id, state from media_queue.job where name = 'scan'")
    expect(jobs).toEqual([{ data, group_id: owner, state: 'created' }])
    expect(await actsOn(id)).toEqual([
      { action: 'dead_letter_retried', token_id: admin.id, details: { kind: 'job', name: 'scan' } },
    ])
  })

  test('a variant that is tried again is claimed again, so that its job makes it', async () => {
    const clip = idIn(await service.readyAlike(gif(width++, 12, [{ delay: 10 }])))
    const { source_id: sourceId, token_id: owner } = await sourceOf(clip)
    const data = { sourceId, name: 'w320.gif', variant: { ending: 'gif', width: 320, fit: 'inside' } }
    const id = await deadJob('variants', data, owner as string, null)
    expect((await as(admin.token, 'POST', `/queue/dead/${id}/retry`)).status).toBe(202)
    expect(await query('select name, state from variants where source_id = $1', [sourceId])).toEqual([
      { name: 'w320.gif', state: 'making' },
    ])
  })

  test('a delivery that is tried again is due at once, and enables its webhook', async () => {
    const id = await failedDelivery()
    expect((await as(admin.token, 'POST', `/queue/dead/${id}/retry`)).status).toBe(202)
    const [row] = await query(
      `select state, disabled_at from webhook_deliveries delivery join webhooks on webhooks.id = webhook_id
        where delivery.id = $1`,
      [id],
    )
    expect(row).toEqual({ state: 'pending', disabled_at: null })
    expect(await actsOn(id)).toMatchObject([{ action: 'dead_letter_retried', token_id: admin.id }])
    expect((await as(admin.token, 'POST', `/queue/dead/${id}/retry`)).status).toBe(404)
  })

  test('are deleted once, and deliveries that are not given up never', async () => {
    const [job, delivery] = [await deadJob('extras', {}, null, null), await failedDelivery()]
    const end = async (id: string) => (await as(admin.token, 'DELETE', `/queue/dead/${id}`)).status
    for (const id of [job, delivery]) {
      expect([await end(id), await end(id)]).toEqual([204, 404])
      expect(await actsOn(id)).toMatchObject([{ action: 'dead_letter_deleted', token_id: admin.id }])
    }
    const pending = await failedDelivery()
    await query("update webhook_deliveries set state = 'delivered' where id = $1", [pending])
    expect([await end(pending), await end('x'), await end(crypto.randomUUID())]).toEqual([404, 404, 404])
  })
})

test.for([
  ['GET', '/queue'],
  ['GET', '/queue/dead'],
  ['POST', '/queue/dead/x/retry'],
  ['DELETE', '/queue/dead/x'],
] as const)('%s %s needs the scope admin', async ([method, path]) => {
  const { status, body } = await as(service.token, method, path)
  expect([status, body.error.code]).toEqual([403, 'insufficient_scope'])
})
