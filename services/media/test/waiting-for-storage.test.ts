// A storage that does not answer one upload: the others of its token go on, and its limits hold all the same.

import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { checkBlobs } from '../src/flows/check/check-blobs.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { keepFiles } from '../src/store/blobs/keep-files.ts'
import { newGif } from './gif-bytes.ts'
import { holdCalls } from './hold-calls.ts'
import { type Answer, idIn, startTestService, type TestService } from './service.ts'

let service: TestService
beforeAll(async () => {
  const settings = { MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0', MEDIA_PARALLEL_PER_TOKEN: '20' }
  service = await startTestService(settings)
})
afterAll(() => service.close())

const SIZE = newGif().length

const outcome = ({ status, body }: Answer) => (status === 201 ? 201 : `${status} ${body.error.code}`)
/** The first request for a stored file in an acceptance. */
const holdStorage = () => holdCalls(service.deps.blobs, 'put', { first: true })
const dayOf = async (id: string) =>
  (await service.deps.pool.query('select clips::int, bytes::int from token_days where token_id = $1', [id])).rows

const limits = {
  daily_bytes: { limits: { daily_bytes: SIZE }, refusal: '429 daily_bytes_exceeded' },
  queued: { limits: { queued: 1 }, refusal: '429 queue_full' },
}

test.for(Object.keys(limits))(
  'an upload that waits for the storage delays no other of its token, and both keep its limit of %s',
  async (name) => {
    const { limits: own, refusal } = limits[name as keyof typeof limits]
    const { token, id } = await service.newToken({ limits: own })
    const upload = () => service.upload(newGif(), [], { token })
    const storage = holdStorage()
    const waiting = upload()
    await storage.reached
    expect(outcome(await upload())).toBe(201)
    storage.release()
    expect(outcome(await waiting)).toBe(refusal)
    expect(await dayOf(id)).toEqual([{ clips: 1, bytes: SIZE }])
    expect((await service.deps.pool.query('select from clips where token_id = $1', [id])).rowCount).toBe(1)
  },
)

test('the same bytes of other tokens are accepted while an upload of one of them waits for the storage', async () => {
  const shared = newGif()
  expect(outcome(await service.upload(shared))).toBe(201)
  const { token, id } = await service.newToken({ limits: { daily_bytes: 2 * SIZE } })
  const storage = holdStorage()
  const waiting = service.upload(newGif(), [], { token })
  await storage.reached
  expect(outcome(await service.upload(shared, [], { token }))).toBe(201)
  storage.release()
  expect(outcome(await waiting)).toBe(201)
  expect(await dayOf(id)).toEqual([{ clips: 2, bytes: 2 * SIZE }])
})

test('an upload that the storage fails gives its bytes and its clip of the day back', async () => {
  const { token, id } = await service.newToken({ limits: { daily_bytes: SIZE } })
  const { blobs } = service.deps
  const { put } = blobs
  blobs.put = async () => {
    blobs.put = put
    throw new Error('the storage is away')
  }
  const { clips } = await service.countRows()
  expect((await service.upload(newGif(), [], { token })).status).toBe(500)
  expect(await dayOf(id)).toEqual([])
  expect((await service.countRows()).clips).toBe(clips)
  expect(outcome(await service.upload(newGif(), [], { token }))).toBe(201)
})

test('no request to the storage is sent inside a transaction in any test', async () => {
  const { blobs, db } = service.deps
  const name = { sha256: '0'.repeat(64), extension: 'gif' }
  await expect(db.transaction().execute(() => blobs.stat(name))).rejects.toThrow('inside a transaction')
  expect(await blobs.stat(name)).toBeUndefined()
})

async function leaveUnreferenced(): Promise<void> {
  const { deps } = service
  const [path, bytes] = [deps.work.newPath(), newGif()]
  await writeFile(path, bytes)
  const name = { sha256: createHash('sha256').update(bytes).digest('hex'), extension: 'gif' }
  await keepFiles(deps, [{ name, path, bytes: bytes.length }], async () => ({ references: [], result: undefined }))
  service.clock.advance({ seconds: 601 })
}

async function loseFileOf(id: string): Promise<void> {
  const { rows } = await service.deps.pool.query(
    `select encode(sha256, 'hex') as sha256, kind as extension from renditions join clips using (source_id)
     where id = $1 and kind = 'mp4'`,
    [id],
  )
  await service.deps.blobs.delete(rows[0])
}

/** Work that requests the storage, more of each kind than the pool has connections. */
const work = {
  uploads: () => service.upload(newGif()),
  deletions: () => cleanUp(service.deps),
  checks: () => checkBlobs(service.deps, { deep: true, fix: true, report: () => {} }),
}

test.for(['put', 'stat', 'open', 'delete'] as const)(
  'while the storage hangs in %s, other requests have the connections of the pool',
  async (method) => {
    const { token } = await service.newToken({ scopes: ['write', 'read'] })
    const id = idIn(await service.readyAlike(newGif(), [], { token }))
    await leaveUnreferenced()
    await loseFileOf(idIn(await service.readyAlike(newGif())))
    const { reached, release } = holdCalls(service.deps.blobs, method)
    const { max } = service.deps.pool.options
    const all = Object.values(work).flatMap((begin) =>
      Array.from({ length: (max ?? 10) + 1 }, () => begin() as Promise<unknown>),
    )
    await reached
    // Each of these would wait for a connection, for ever.
    for (let round = 0; round < 10; round++) {
      expect((await service.get(`/media/${id}`, { token })).status).toBe(200)
      expect((await service.get('/media', { token })).status).toBe(200)
    }
    await expect.poll(() => service.deps.pool.totalCount - service.deps.pool.idleCount).toBe(0)
    release()
    await Promise.all(all)
  },
)
