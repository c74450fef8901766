import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { expect } from 'vitest'
import { startTestService, test } from '../../../test/service.ts'
import { cleanUp } from '../../housekeeping.ts'
import type { BlobName } from './blob-storage.ts'
import { addReference, beginDeletion } from './blobs.store.ts'
import { deleteIfUnreferenced, type FileToKeep, keepFiles } from './keep-files.ts'

test('a deletion that fails after it took the file leaves no reference without a file', async ({ service }) => {
  const { deps } = service
  const file = await newFile(deps.work.newPath(), 'content')
  const failing = {
    ...deps.blobs,
    delete: async (name: BlobName) => {
      await deps.blobs.delete(name)
      throw new Error('the connection to the database is lost')
    },
  }
  let puts = 0
  const blobs = {
    ...deps.blobs,
    put: async (name: BlobName, path: string) => {
      await deps.blobs.put(name, path)
      if (puts++ === 0) await expect(deleteIfUnreferenced({ ...deps, blobs: failing }, name)).rejects.toThrow('lost')
    },
  }
  await keepFiles({ ...deps, blobs }, [file], async () => ({ references: [file.name], result: undefined }))
  expect(puts).toBe(2)
  expect(await deps.blobs.open(file.name).then((stream) => stream?.destroy() !== undefined)).toBe(true)
})

test('a file that is being deleted is stored again when its deletion has ended', async ({ service }) => {
  const { deps } = service
  const file = await newFile(deps.work.newPath(), 'again')
  await keepFiles(deps, [file], async () => ({ references: [], result: undefined }))
  const [reached, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const order: string[] = []
  const blobs = {
    ...deps.blobs,
    delete: async (name: BlobName) => {
      reached.resolve()
      await released.promise
      await deps.blobs.delete(name)
      order.push('deleted')
    },
    put: async (name: BlobName, path: string) => {
      order.push('put')
      await deps.blobs.put(name, path)
    },
  }
  // Requests at once delete it once.
  const deleting = Promise.all([1, 2, 3].map(() => deleteIfUnreferenced({ ...deps, blobs }, file.name)))
  await reached.promise
  let checks = 0
  const now = () => {
    checks++
    return deps.now()
  }
  const keeping = keepFiles({ ...deps, blobs, now }, [file], async () => ({
    references: [file.name],
    result: undefined,
  }))
  await expect.poll(() => checks).toBeGreaterThan(1)
  released.resolve()
  expect((await deleting).filter(Boolean)).toEqual([true])
  await keeping
  expect(order).toEqual(['deleted', 'put'])
  expect(await deps.blobs.stat(file.name)).toBeDefined()
  expect(await deleteIfUnreferenced(deps, file.name)).toBe(false)
})

test('a deletion that a kill cut off ends a minute later, by the next one or by a put', async ({ service }) => {
  const { deps } = service
  const files = await Promise.all(['cut', 'off'].map((text) => newFile(deps.work.newPath(), text)))
  const [put, unused] = files as [FileToKeep, FileToKeep]
  for (const file of files) {
    await keepFiles(deps, [file], async () => ({ references: [], result: undefined }))
    const generation = await generationOf(file.name, deps.pool)
    await deps.db.transaction().execute((trx) => beginDeletion(trx, [file.name], { generation, now: deps.now() }))
    await deps.blobs.delete(file.name)
  }
  expect(await deleteIfUnreferenced(deps, unused.name)).toBe(false)
  const later = { ...deps, now: () => new Date(deps.now().getTime() + 61_000) }
  expect(await deleteIfUnreferenced(later, unused.name)).toBe(true)
  const cutOff = await generationOf(put.name, deps.pool)
  await keepFiles(later, [put], async () => ({ references: [put.name], result: undefined }))
  expect(await deps.blobs.stat(put.name)).toBeDefined()
  // Were its process only slow, its end would change nothing.
  expect(await generationOf(put.name, deps.pool)).not.toBe(cutOff)
})

/** Locks the first, begins the work, and returns whether it waits for the first while the second is free. */
async function takesInOrder([first, second]: [BlobName, BlobName], work: () => Promise<unknown>, pool: Pool) {
  const lock = (name: BlobName, how = '') =>
    client.query(`select 1 from blobs where sha256 = $1 and extension = $2 for update ${how}`, [
      Buffer.from(name.sha256, 'hex'),
      name.extension,
    ])
  const client = await pool.connect()
  try {
    await client.query('begin')
    await lock(first)
    const working = work()
    await expect.poll(() => countLockWaits(pool)).toBe(1)
    const isFree = await lock(second, 'nowait').then(
      () => true,
      () => false,
    )
    await client.query('rollback')
    await working
    return isFree
  } finally {
    client.release()
  }
}

type Pool = Awaited<ReturnType<typeof startTestService>>['deps']['pool']

test('locks on files are taken in one order by additions and drops of references', async ({ service }) => {
  const { deps } = service
  const files = await Promise.all(['a', 'b'].map((text) => newFile(deps.work.newPath(), text)))
  const [low, high] = files.toSorted((a, b) => (a.name.sha256 < b.name.sha256 ? -1 : 1)) as [FileToKeep, FileToKeep]
  const order: [BlobName, BlobName] = [low.name, high.name]
  await keepFiles(deps, files, async () => ({ references: order, result: undefined }))

  const exchange = () =>
    keepFiles(deps, [low], async () => ({ references: [low.name], dropped: [high.name], result: undefined }))
  expect(await takesInOrder(order, exchange, deps.pool)).toBe(true)

  // A source whose rows lie the other way round than their names are sorted.
  const sourceId = deps.newId()
  await deps.pool.query(
    `insert into sources (id, sha256, pipeline_version, state, bytes, info, has_audio, clip_count, unreferenced_at,
      created_at, finished_at) values ($1, $2, 1, 'ready', 1, '{}', false, 0, $3, $3, $3)`,
    [sourceId, Buffer.alloc(32), new Date(0)],
  )
  for (const { name } of [high, low]) {
    const generation = await generationOf(name, deps.pool)
    await deps.db.transaction().execute((trx) => addReference(trx, name, generation))
    await deps.pool.query(
      `insert into renditions (source_id, kind, sha256, bytes, width, height) values ($1, $2, $3, 1, 1, 1)`,
      [sourceId, name.extension, Buffer.from(name.sha256, 'hex')],
    )
  }
  expect(await takesInOrder(order, () => cleanUp(deps), deps.pool)).toBe(true)
})

test('a file that cannot be deleted does not delay others', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps } = service
  const files = await Promise.all(['x', 'y', 'z'].map((text) => newFile(deps.work.newPath(), text)))
  for (const file of files) {
    await keepFiles(deps, [file], async () => ({ references: [], result: undefined }))
    service.clock.advance({ seconds: 1 })
  }
  service.clock.advance({ seconds: 3_600 })
  const undeletable = files[0] as FileToKeep
  const blobs = {
    ...deps.blobs,
    delete: async (name: BlobName) => {
      if (name.sha256 === undeletable.name.sha256) throw new Error('EACCES')
      await deps.blobs.delete(name)
    },
  }
  await cleanUp({ ...deps, blobs })
  const { rows } = await deps.pool.query(`select encode(sha256, 'hex') as sha256 from blobs`)
  expect(rows).toEqual([{ sha256: undeletable.name.sha256 }])
  await service.close()
})

async function generationOf({ sha256, extension }: BlobName, pool: Pool): Promise<string> {
  const key = [Buffer.from(sha256, 'hex'), extension]
  const { rows } = await pool.query('select generation from blobs where sha256 = $1 and extension = $2', key)
  return rows[0].generation
}

const KINDS = ['gif', 'jpg']

async function newFile(path: string, text: string): Promise<FileToKeep> {
  await writeFile(path, text)
  const sha256 = createHash('sha256').update(text).digest('hex')
  const extension = KINDS[text.charCodeAt(0) % 2] as string
  return { name: { sha256, extension }, path, bytes: text.length }
}
