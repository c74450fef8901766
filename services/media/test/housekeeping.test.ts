import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { expect } from 'vitest'
import { cleanUp, startHousekeeping, sweepWorkDirectory } from '../src/housekeeping.ts'
import { type BlobName, blobKey } from '../src/store/blobs/blob-storage.ts'
import { startWorker } from '../src/worker.ts'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, type TestService, test } from './service.ts'

const later = { prefer: 'respond-async' }
const noWorkers = { MEDIA_WORKERS_ENABLED: 'false' }
const often = { timeLimits: { firstHousekeepingMs: 10, housekeepingEveryMs: 50 } }

/** A file that nothing refers to; one that is a directory cannot be deleted. */
async function leave(service: TestService, name: BlobName, isDirectory = false): Promise<void> {
  const path = join(service.blobsDir, blobKey(name))
  await mkdir(isDirectory ? path : join(path, '..'), { recursive: true })
  if (!isDirectory) await writeFile(path, 'x')
  await service.deps.pool.query(
    `insert into blobs (sha256, extension, bytes, unreferenced_at) values (decode($1, 'hex'), $2, 1, $3)`,
    [name.sha256, name.extension, service.clock.now()],
  )
}

const numbered = (number: number): BlobName => ({ sha256: number.toString(16).padStart(64, '0'), extension: 'gif' })

test('a worker tidies up by itself, soon after its start and again and again', async () => {
  const service = await startTestService({}, often)
  for (const number of [1, 2]) {
    await leave(service, numbered(number))
    service.clock.advance({ seconds: 601 })
    await expect.poll(() => service.listFiles()).toEqual([])
  }
  await service.close()
})

test('a process without workers tidies up its work directory, again and again', async () => {
  const service = await startTestService(noWorkers, often)
  const stop = startHousekeeping(service.deps, sweepWorkDirectory)
  // Directories of another container: only their age shows that they are dead.
  for (const name of ['000000000000_1_0123abcd4567cdef', '000000000000_2_0123abcd4567cdef']) {
    const left = join(service.blobsDir, 'work', name)
    await mkdir(left)
    await writeFile(join(left, 'half-written'), 'x')
    const silentSince = Date.now() / 1000 - 61 * 60
    await utimes(left, silentSince, silentSince)
    await expect.poll(() => service.listFiles()).toEqual([])
  }
  await stop()
  await service.close()
})

test('a stop waits for the running step of housekeeping', async () => {
  const service = await startTestService(noWorkers, often)
  const { deps, clock } = service
  await leave(service, numbered(1))
  clock.advance({ seconds: 601 })
  const lock = await deps.pool.connect()
  await lock.query('begin; lock table blobs in share mode')
  const left = Promise.withResolvers<string[]>()
  const recordWhatIsLeft = async (graceMs: number) => {
    left.resolve(await service.listFiles())
    await deps.queue.stop(graceMs)
  }
  const stop = await startWorker({ ...deps, queue: { ...deps.queue, stop: recordWhatIsLeft } })
  await expect.poll(() => countLockWaits(deps.pool)).toBe(1)
  const stopped = stop()
  await lock.query('rollback')
  lock.release()
  await stopped
  expect(await left.promise).toEqual([])
  await service.close()
})

test('files that cannot be deleted do not stop the deletion of the others', async () => {
  const service = await startTestService(noWorkers)
  for (let number = 1; number <= 501; number++) await leave(service, numbered(number), true)
  service.clock.advance({ seconds: 1 })
  await leave(service, { sha256: 'f'.repeat(64), extension: 'gif' })
  service.clock.advance({ seconds: 601 })
  await cleanUp(service.deps)
  expect(await service.listFiles()).toEqual([])
  await service.close()
})

test('a half-stored file of a killed process is removed after an hour', async () => {
  const service = await startTestService(noWorkers)
  const left = join(service.blobsDir, 'incoming', 'left')
  await writeFile(left, 'x')
  await cleanUp(service.deps)
  expect(await service.listFiles()).toEqual(['incoming/left'])
  const hourAgo = Date.now() / 1000 - 3_601
  await utimes(left, hourAgo, hourAgo)
  await cleanUp(service.deps)
  expect(await service.listFiles()).toEqual([])
  await service.close()
})

test('two replicas that tidy up one work directory at once both finish', async () => {
  const service = await startTestService(noWorkers)
  const directory = join(service.deps.config.storage.workDir, 'resumable')
  await mkdir(directory, { recursive: true })
  for (let number = 0; number < 50; number++) {
    const left = join(directory, String(number).padStart(32, '0'))
    await writeFile(left, 'x')
    await utimes(left, 0, 0)
  }
  await Promise.all([cleanUp(service.deps), cleanUp(service.deps)])
  expect(await readdir(directory)).toEqual([])
  await service.close()
})

test('a failed clip is visible to its owner for a week and gone without a trace after it', async () => {
  const service = await startTestService(noWorkers)
  const id = idIn(await service.upload(gif(70, 20, [{ delay: 10 }]), [], later))
  await service.deps.pool.query(`update sources set state = 'failed', error_code = 'corrupt_media', finished_at = $1`, [
    service.clock.now(),
  ])
  const status = async () => (await service.get(`/media/${id}`, { token: service.token })).status
  service.clock.advance({ seconds: 7 * 86_400 - 1 })
  await cleanUp(service.deps)
  expect(await status()).toBe(200)
  service.clock.advance({ seconds: 2 })
  await cleanUp(service.deps)
  expect(await status()).toBe(404)
  expect(await service.countRows()).toEqual({ clips: 0, sources: 0 })
  await service.close()
})

/** Makes expired clips without a token, `each` of every source; sources 1 to 3 have their first file in common. */
async function addExpired(service: TestService, { sources, each }: { sources: number; each: number }): Promise<void> {
  const { deps, clock } = service
  const before = new Date(clock.now().getTime() - 1_000)
  const query = (text: string, values: unknown[]) => deps.pool.query(text, values)
  await query(
    `insert into blobs (sha256, extension, bytes, reference_count)
      select sha256(format('%s of %s', kind, case kind when 'gif' then greatest(n, 3) else n end)::bytea), kind, 1, count(*)
      from generate_series(1, $1) n, unnest(array['gif', 'jpg', 'mp4', 'webm']) kind group by 1, 2`,
    [sources],
  )
  await query(
    `insert into sources (id, sha256, pipeline_version, state, bytes, info, has_audio, clip_count, created_at, finished_at)
      select md5('source ' || n)::uuid, sha256(n::text::bytea), 2, 'ready', 1, '{}', false, $2, $3, $3
      from generate_series(1, $1) n`,
    [sources, each, before],
  )
  await query(
    `insert into renditions (source_id, kind, sha256, bytes, width, height)
      select md5('source ' || n)::uuid, kind,
        sha256(format('%s of %s', kind, case kind when 'gif' then greatest(n, 3) else n end)::bytea), 1, 1, 1
      from generate_series(1, $1) n, unnest(array['gif', 'jpg', 'mp4', 'webm']) kind`,
    [sources],
  )
  await query(
    `insert into clips (id, source_id, source_kind, expires_at, created_at)
      select lpad((n * 1000 + m)::text, 8, '0'), md5('source ' || n)::uuid, 'upload', $3, $3
      from generate_series(1, $1) n, generate_series(1, $2) m`,
    [sources, each, before],
  )
}

test('replicas that delete many clips at once leave every count right, and files that are still used', async () => {
  const service = await startTestService(noWorkers)
  const { deps, clock } = service
  await addExpired(service, { sources: 450, each: 3 })
  const one = async (text: string) => (await deps.pool.query(text)).rows[0]
  // A clip that stays keeps its source, and the file that two others share with it.
  await deps.pool.query(`update clips set expires_at = null where id = '00001001'`)
  const both = () => Promise.all([cleanUp(deps), cleanUp(deps)])
  await both()
  expect(await one('select count(*)::int from clips where deleted_at is null')).toEqual({ count: 1 })
  expect(await one('select sum(clip_count)::int as clips, count(unreferenced_at)::int as unused from sources')).toEqual(
    {
      clips: 1,
      unused: 449,
    },
  )
  clock.advance({ seconds: 601 })
  await both()
  expect(await one('select count(*)::int from sources')).toEqual({ count: 1 })
  expect(
    await one(`select sum(reference_count)::int as counted, (select count(*)::int from renditions) as made,
      count(unreferenced_at)::int as unused from blobs`),
  ).toEqual({ counted: 4, made: 4, unused: 449 * 4 - 2 })
  clock.advance({ seconds: 601 })
  await both()
  expect(await one('select count(*)::int from blobs')).toEqual({ count: 4 })
  await service.close()
})
