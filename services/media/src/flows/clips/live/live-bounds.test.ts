// Cost of one stream for the database and the other streams, whatever id it returns with.
import type { KyselyPlugin, QueryId } from 'kysely'
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { gif } from '../../../../test/gif-bytes.ts'
import { idIn, startTestService, type TestService } from '../../../../test/service.ts'
import { rowsRead } from '../testing/rows-read.ts'
import { deleteOldChanges, findMoment, readChanges, snapshotOf } from './changes.store.ts'
import { createLiveStreams, MOST_CHANGES, MOST_CLIPS } from './live-streams.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
})
afterAll(() => service.close())

const query = (text: string, values: unknown[] = []) => service.deps.pool.query(text, values)
let sizes = 20
const nextFile = () => gif(sizes++, 11, [{ delay: 10 }])

/** Changes of 100 tokens, 50 each. */
async function addForeignChanges() {
  await query(
    `insert into clip_changes (token_id, clip_id, kind)
     select ('00000000-0000-0000-0000-' || lpad((n % 100)::text, 12, '0'))::uuid, 'F' || n, 'updated'
     from generate_series(1, 5000) n`,
  )
  await query('analyze clip_changes')
}

test('a reader reads the changes of its own clips, and an admin those since its last reading', async () => {
  const { db } = service.deps
  const { id } = await service.newToken()
  const add = (owner: string | null) =>
    query(`insert into clip_changes (token_id, clip_id, kind) values ($1, 'own', 'updated')`, [owner])
  await add(id)
  await add(null)
  await addForeignChanges()
  const { snapshot } = await findMoment(db, '1')
  const since = snapshotOf('1')
  const readers = [
    { clipsOf: id, since },
    { clipsOf: null, since },
    { clipsOf: undefined, since: snapshot },
  ]
  const most = { clips: MOST_CLIPS, changes: MOST_CHANGES }
  expect((await readChanges(db, readers, most)).changes).toMatchObject([
    { reader: 0, clipId: 'own' },
    { reader: 1, clipId: 'own' },
  ])
  expect(await rowsRead(service.deps, (noted) => readChanges(noted, readers, most))).toBeLessThan(10)
})

test('a deletion of old changes reads one batch of the others', async () => {
  await addForeignChanges()
  const drain = async (db: typeof service.deps.db) => {
    for await (const _ of deleteOldChanges(db));
  }
  expect(await rowsRead(service.deps, drain)).toBeLessThanOrEqual(1_000)
})

test('progress of a clip without a token is not noted, its end is', async () => {
  const id = idIn(await service.upload(nextFile(), [], { prefer: 'respond-async', token: service.token }))
  await query('update clips set token_id = null where id = $1', [id])
  const change = (what: string) =>
    query(`update sources set ${what} where id = (select source_id from clips where id = $1)`, [id])
  await change('progress = 0.5')
  await change(`state = 'ready', progress = 1, finished_at = now()`)
  const { rows } = await query('select kind from clip_changes where clip_id = $1 order by xid', [id])
  expect(rows.map(({ kind }) => kind)).toEqual(['created', 'ready'])
})

/** Streams of a process whose readings from the forged position 1 hold on, until they are failed. */
async function openHeld(lastId: string | undefined) {
  const owner = await service.newToken()
  const held = new WeakSet<QueryId>()
  const { promise, reject: fail } = Promise.withResolvers<never>()
  promise.catch(() => {})
  const holding: KyselyPlugin = {
    transformQuery: ({ node, queryId }) => {
      if (JSON.stringify(node).includes(snapshotOf('1'))) held.add(queryId)
      return node
    },
    transformResult: ({ result, queryId }) => (held.has(queryId) ? promise : Promise.resolve(result)),
  }
  const streams = createLiveStreams({ ...service.deps, db: service.deps.db.withPlugin(holding) })
  const open = (id: string | undefined) =>
    streams.open({ tokenId: owner.id, sessionHash: null, clipsOf: owner.id, onRefusal: () => {} }, id)
  const opened = await Promise.all([open(undefined), open(lastId)])
  onTestFinished(() => opened.forEach((stream) => void stream.close()))
  const seen = opened.map((): string[] => [])
  const read = (n: number) => {
    for (let block = opened[n]?.take(); block !== undefined; block = opened[n]?.take()) seen[n]?.push(block)
    return seen[n]?.join('')
  }
  return { owner, read, fail }
}

test('a reading that fails resets the stream that is far behind, while the others go on', async () => {
  const warn = vi.spyOn(service.deps.log, 'warn')
  onTestFinished(() => warn.mockRestore())
  const { owner, read, fail } = await openHeld(`${service.clock.now().getTime()}.1`)
  const add = async () => idIn(await service.readyAlike(nextFile(), [], { token: owner.token }))
  const [first, second] = [await add(), await add()]
  expect(read(1)).toMatch(/^id: \d+\.1\n\n$/)
  await expect.poll(() => read(0)).toContain(first)
  await expect.poll(() => read(0)).toContain(second)
  expect(read(1)).not.toContain('event')
  fail(new Error('canceling statement due to statement timeout'))
  await expect.poll(() => read(1)).toContain('event: reset')
  expect(warn.mock.calls.map(([fields]) => fields)).toContainEqual({ err: expect.any(Error), streams: 1 })
  const third = await add()
  await expect.poll(() => read(1)).toContain(third)
  expect(read(1)).not.toContain(first)
})

test('streams that resume at once are read by turns, each once', async () => {
  const owner = await service.newToken()
  const readings: number[] = []
  const counting: KyselyPlugin = {
    transformQuery: ({ node }) => {
      const resumed = JSON.stringify(node).split(`"${snapshotOf('1')}"`).length - 1
      if (resumed > 0) readings.push(resumed)
      return node
    },
    transformResult: async ({ result }) => result,
  }
  const streams = createLiveStreams({ ...service.deps, db: service.deps.db.withPlugin(counting) })
  const caller = { tokenId: owner.id, sessionHash: null, clipsOf: owner.id, onRefusal: () => {} }
  const id = `${service.clock.now().getTime()}.1`
  const opened = await Promise.all(Array.from({ length: 120 }, () => streams.open(caller, id)))
  onTestFinished(() => opened.forEach((stream) => void stream.close()))
  for (const stream of opened) stream.take()
  await expect.poll(() => opened.every((stream) => !stream.position().endsWith('.1\n\n'))).toBe(true)
  expect(readings).toEqual([50, 50, 20])
})

test('more changes than a reading takes are a reset, be they of one clip', async () => {
  const owner = await service.newToken()
  await query(
    `insert into clip_changes (token_id, clip_id, kind) select $1, 'busy', 'processing' from generate_series(0, $2)`,
    [owner.id, MOST_CHANGES],
  )
  const streams = createLiveStreams(service.deps)
  const stream = await streams.open(
    { tokenId: owner.id, sessionHash: null, clipsOf: owner.id, onRefusal: () => {} },
    `${service.clock.now().getTime()}.1`,
  )
  onTestFinished(stream.close)
  stream.take()
  await expect.poll(stream.take).toBe('event: reset\ndata: {}\n\n')
  expect(stream.take()).toMatch(/^id: \d+\.\d+\n\n$/)
})
