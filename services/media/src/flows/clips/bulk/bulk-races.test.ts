// Many clips changed at once by several requests, and what each of them costs the database.
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { startTestService, type TestService } from '../../../../test/service.ts'
import { findSource, markReady } from '../../../core/sources/sources.store.ts'
import { addClips } from '../testing/many-clips.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_DB_MAX_POOL_SIZE: '8' })
})
afterAll(() => service.close())

const bulk = (body: object, { token = service.token, key }: { token?: string; key?: string } = {}) =>
  service.call('POST', '/media/bulk', {
    headers: { token, 'content-type': 'application/json', ...(key !== undefined && { 'idempotency-key': key }) },
    body: JSON.stringify(body),
  })

test('requests about the same clips in opposite orders never wait for each other in a circle', async () => {
  const ids = await addClips(service, 100, { tags: ['start'] })
  const acts = [
    { action: 'tag', tags: ['a'] },
    { action: 'untag', tags: ['start'] },
    { action: 'nsfw', nsfw: true },
    { action: 'visibility', visibility: 'unlisted' },
    { action: 'lifetime', expires_in: '1h' },
  ]
  const answers = await Promise.all(
    [...acts, ...acts].map((act, n) => bulk({ ids: n % 2 ? ids : ids.toReversed(), ...act })),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(10).fill(200))
  const deletions = await Promise.all([ids, ids.toReversed()].map((some) => bulk({ ids: some, action: 'delete' })))
  const results = deletions.map(
    ({ body }) =>
      new Map<string, boolean>(body.success.results.map(({ id, ok }: { id: string; ok: boolean }) => [id, ok])),
  )
  expect(ids.map((id) => results.filter((each) => each.get(id)).length)).toEqual(ids.map(() => 1))
})

test('two requests with one key at once delete once, and have one answer', async () => {
  const ids = await addClips(service, 120)
  const [one, other] = await Promise.all([0, 1].map(() => bulk({ ids, action: 'delete' }, { key: 'at once' })))
  expect(one?.body).toEqual({ success: { results: ids.map((id) => ({ id, ok: true })) } })
  expect(other?.body).toEqual(one?.body)
})

test('clips of one source are tagged while a worker corrects its length', async () => {
  const { db, pool, now } = service.deps
  const ids = await addClips(service, 9)
  const { rows } = await pool.query('select source_id from clips where id = $1', [ids[0]])
  await pool.query(`update sources set state = 'processing' where id = $1`, [rows[0].source_id])
  const source = await findSource(db, rows[0].source_id)
  if (!source) throw new Error('the clips have no source')
  const { tagging } = await db.transaction().execute(async (trx) => {
    await trx.selectFrom('sources').select('id').where('id', '=', source.id).forUpdate().execute()
    const tagging = bulk({ ids, action: 'tag', tags: ['long'] })
    await expect.poll(() => countLockWaits(pool)).toBe(1)
    const info = { ...source.info, durationSeconds: 0.1 }
    await markReady(trx, { id: source.id, hasAudio: false, placeholder: Buffer.alloc(5), info, now: now() })
    return { tagging }
  })
  expect((await tagging).body.success.results.every(({ ok }: { ok: boolean }) => ok)).toBe(true)
})

/** Statements of a request, by their first words. */
async function statementsOf(work: () => Promise<unknown>): Promise<string[]> {
  const heard: string[] = []
  const known = new WeakSet<object>()
  const listen = (client: { query: unknown }) => {
    if (known.has(client)) return
    known.add(client)
    const query = (client.query as (...args: unknown[]) => unknown).bind(client)
    client.query = (...args: [string | { text: string }, ...unknown[]]) => {
      const [asked] = args
      heard.push(typeof asked === 'string' ? asked : asked.text)
      return query(...args)
    }
  }
  service.deps.pool.on('acquire', listen)
  await work()
  service.deps.pool.off('acquire', listen)
  return heard
}

test.for([
  ['delete', { action: 'delete' }, 12],
  ['tag', { action: 'tag', tags: ['a'] }, 8],
  ['visibility', { action: 'visibility', visibility: 'private' }, 7],
] as const)('%s costs as many statements for fifty clips as for one, webhooks included', async ([, act, most]) => {
  const { token } = await service.newToken()
  const headers = { token, 'content-type': 'application/json' }
  const hook = await service.call('POST', '/webhooks', {
    headers,
    body: JSON.stringify({ url: 'https://hooks.example/' }),
  })
  expect(hook.status).toBe(201)
  const [one = '', ...fifty] = await addClips(service, 51, { token })
  const warm = await statementsOf(() => bulk({ ids: [one], ...act }, { token, key: `one ${act.action}` }))
  const all = await statementsOf(() => bulk({ ids: fifty, ...act }, { token, key: `fifty ${act.action}` }))
  const ofTransaction = (statements: string[]) => {
    const begin = statements.findIndex((text) => /^(begin|start transaction)/i.test(text))
    return statements.slice(begin, statements.findIndex((text, n) => n > begin && /^commit/i.test(text)) + 1)
  }
  const [ofOne, ofFifty] = [ofTransaction(warm), ofTransaction(all)]
  expect(ofFifty.length, ofFifty.join('\n')).toBe(ofOne.length)
  expect(ofFifty.length, ofFifty.join('\n')).toBeLessThanOrEqual(most)
})

test('the deletion of 500 clips queues 500 webhooks, each once', async () => {
  const { token, id: owner } = await service.newToken()
  const headers = { token, 'content-type': 'application/json' }
  await service.call('POST', '/webhooks', {
    headers,
    body: JSON.stringify({ url: 'https://hooks.example/', events: ['media.deleted'] }),
  })
  const ids = await addClips(service, 500, { token })
  await service.deps.pool.query('delete from webhook_deliveries')
  await bulk({ ids, action: 'delete' }, { token })
  const { rows } = await service.deps.pool.query(
    `select id, payload -> 'data' ->> 'id' as clip from webhook_deliveries`,
  )
  expect(rows.map(({ clip }) => clip).toSorted()).toEqual(ids.toSorted())
  expect(await service.deps.queue.depth('webhook', owner)).toBeGreaterThanOrEqual(500)
})
