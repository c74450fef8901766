import { rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import type { BenchDatabase } from '@services/common/bench/postgres'
import type { startReport } from '@services/common/bench/report'
import { startS3Server } from '../test/upstreams/s3-server.ts'
import { type BenchClip, idOf, makeClip } from './clips.ts'
import { type BenchService, startService, startWorkers, upload } from './service.ts'

type Report = ReturnType<typeof startReport>

/** A short clip of about half a megabyte, because hundreds are made. */
export const SHORT_CLIP: BenchClip = { name: '480p, 2 s', file: 'short.mp4', size: '854x480', seconds: 2 }

const MIB = 1024 ** 2
const MB = 1e6

/** Enough rows that partly filled pages do not matter. */
const STORED_CLIPS = 100_000

export interface Measured {
  report: Report
  database: BenchDatabase
  /** Makes a file of the short clip that is new to the service. */
  newClip: () => Promise<string>
  /** Fewest clips for a rate. */
  least: number
}

/** Measures 1 to `most` clips at once, each uploaded by a client that waits for its 201 before the next. */
export async function growClips(
  { report, database, newClip, least }: Measured,
  service: BenchService,
  most: number,
): Promise<void> {
  const point = report.growth('clips', {
    title: `From one clip at once to ${most}, each of ${SHORT_CLIP.name}`,
    axis: 'clips at once',
    lines: {
      rate: 'clips/s',
      p50: 'upload to 201, p50, s',
      p99: 'upload to 201, p99, s',
      memory: 'peak of the service, MiB',
    },
  })
  const before = { ...(await database.activity()), wal: await database.walBytes() }
  let made = 0
  for (const atOnce of upTo(most)) {
    const count = Math.max(least, atOnce)
    await service.resetPeak()
    const { rate, p50, p99 } = await uploadMany(service, await clips(newClip, count), atOnce)
    point(atOnce, { rate, p50, p99, memory: (await service.memory()).peak / MIB })
    made += count
  }
  const after = { ...(await database.activity()), wal: await database.walBytes() }
  const perClip = (id: string, what: string, unit: string, all: number) =>
    report.figure(id, { what: `${what} for a clip, the queue's included`, unit, value: all / made })
  perClip('commits', 'transactions', 'transactions', after.commits - before.commits)
  perClip('rows-written', 'rows written', 'rows', after.rowsWritten - before.rowsWritten)
  perClip('wal', 'write-ahead log', 'bytes', after.wal - before.wal)
}

/** Measures worker processes with one slot each, beside a service that only accepts uploads. */
export async function growWorkers({ report, newClip, least }: Measured, url: string, directory: string): Promise<void> {
  const cores = availableParallelism()
  const point = report.growth('workers', {
    title: `From one worker process to ${cores} on ${cores} cores, one clip at once in each`,
    axis: 'worker processes',
    lines: { rate: 'clips/s', p50: 'upload to 201, p50, s', p99: 'upload to 201, p99, s' },
  })
  const service = await startService(url, directory, { settings: { MEDIA_WORKERS_ENABLED: 'false' } })
  for (const processes of upTo(cores)) {
    const workers = await startWorkers(url, directory, processes)
    point(processes, await uploadMany(service, await clips(newClip, 2 * least), 4 * cores))
    await workers.stop()
  }
  await service.stop()
}

/**
 * Measures the bytes of a clip in the database: a finished one is copied a hundred thousand times under new keys. A
 * title and tags would add rows of words and tags.
 */
export async function storedClip({ report, database }: Measured): Promise<void> {
  const client = await database.pool.connect()
  // Neither triggers nor foreign keys: they add nothing to a table's size.
  await client.query("set session_replication_role = 'replica'")
  const sample = { sources: 'id', clips: 'source_id', renditions: 'source_id' }
  const found = await client.query("select id from sources where state = 'ready' order by finished_at desc limit 1")
  for (const [table, column] of Object.entries(sample)) {
    await client.query(
      `create temporary table one_of_${table} as select * from ${table} where ${column} = '${found.rows[0].id}'`,
    )
  }
  await client.query(`create temporary table one_of_blobs as
    select * from blobs where (sha256, extension) in (select sha256, kind from one_of_renditions)`)
  await client.query(`create temporary table one_of_clip_search as
    select * from clip_search where clip_id in (select id from one_of_clips)`)
  await client.query('truncate sources, clips, renditions, blobs, clip_search cascade')

  const source = "md5('source ' || i)::uuid"
  const clip = `substr(md5('clip ' || i), 1, 8)`
  const digest = (of: string) => `sha256(convert_to(${of} || i, 'UTF8'))`
  const keys: Record<string, Record<string, string>> = {
    sources: { id: source, sha256: digest("'source '") },
    clips: { id: clip, source_id: source },
    renditions: { source_id: source, sha256: digest('kind') },
    blobs: { sha256: digest('extension') },
    clip_search: { clip_id: clip },
  }
  for (const [table, own] of Object.entries(keys)) {
    const { fields } = await client.query(`select * from one_of_${table} limit 0`)
    const values = fields.map(({ name }) => own[name] ?? name)
    await client.query(
      `insert into ${table} (${fields.map(({ name }) => name).join(', ')})
         select ${values.join(', ')} from generate_series(1, ${STORED_CLIPS}) i, one_of_${table} on conflict do nothing`,
    )
  }
  client.release()
  let indexBytes = 0
  for (const table of Object.keys(keys)) {
    const { all, indexes } = await database.tableBytes(table)
    indexBytes += indexes
    report.figure(`bytes-${table}`, {
      what: `a clip in ${table}, indexes and TOAST included`,
      unit: 'bytes',
      value: all / STORED_CLIPS,
    })
  }
  report.figure('bytes-indexes', {
    what: 'of it indexes, in all five',
    unit: 'bytes',
    value: indexBytes / STORED_CLIPS,
  })
}

/** Counts the bucket requests of one clip; buckets are billed by the request. */
export async function bucketRequests({ report, least }: Measured, url: string, directory: string): Promise<void> {
  const s3 = await startS3Server()
  const service = await startService(url, directory, { settings: s3.environment })
  // Each clip has other pictures: files that are already stored would not be written again.
  const paths: string[] = []
  for (let seed = 1; seed <= least; seed++) {
    paths.push(await makeClip(directory, { ...SHORT_CLIP, file: `bucket-${seed}.mp4`, seed }))
  }
  const before = s3.requests.length
  await uploadMany(service, paths, 2)
  await service.stop()
  const requests = s3.requests.slice(before)
  await s3.close()
  const methods = { PUT: 'writes (PUT)', GET: 'reads (GET)', HEAD: 'looks (HEAD)', DELETE: 'deletions' }
  for (const [method, what] of Object.entries(methods)) {
    const count = requests.filter((request) => request.startsWith(`${method} `)).length
    report.figure(`s3-${method.toLowerCase()}`, {
      what: `${what} in a bucket for a clip`,
      unit: 'requests',
      value: count / paths.length,
    })
  }
}

/** Source and files of the finished clips, by clip name. */
export async function storedBytes({ report, database }: Measured, clip: BenchClip): Promise<void> {
  const { rows } = await database.pool.query(
    "select bytes, rendition_bytes from sources where state = 'ready' order by finished_at desc limit 1",
  )
  report.figure(`source-${idOf(clip)}`, { what: `${clip.name}: the upload`, unit: 'MB', value: rows[0].bytes / MB })
  report.figure(`files-${idOf(clip)}`, {
    what: `${clip.name}: the four files`,
    unit: 'MB',
    value: rows[0].rendition_bytes / MB,
  })
}

const clips = async (newClip: () => Promise<string>, count: number) => {
  const paths: string[] = []
  while (paths.length < count) paths.push(await newClip())
  return paths
}

async function uploadMany(service: BenchService, paths: string[], atOnce: number) {
  const times: number[] = []
  const waiting = [...paths]
  const client = async () => {
    for (let path = waiting.pop(); path; path = waiting.pop()) {
      const startedAt = performance.now()
      await upload(service, path)
      times.push((performance.now() - startedAt) / 1000)
    }
  }
  const startedAt = performance.now()
  await Promise.all(Array.from({ length: atOnce }, client))
  const seconds = (performance.now() - startedAt) / 1000
  await Promise.all(paths.map((path) => rm(path)))
  times.sort((a, b) => a - b)
  const percentile = (share: number) => times[Math.floor(times.length * share)] as number
  return { rate: paths.length / seconds, p50: percentile(0.5), p99: percentile(0.99) }
}

/** Powers of two below the number, and the number itself. */
function upTo(count: number): number[] {
  const powers = Array.from({ length: Math.ceil(Math.log2(count)) }, (_, power) => 2 ** power)
  return [...powers, count]
}
