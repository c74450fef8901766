// `pnpm bench`: measures each applicable figure of design.md section 8 for both sides, in one run on one machine, with
// the ratio. Also measures how the cost grows with clips and workers (growth.ts). The service runs as a separate
// process, as with `pnpm start`, on an embedded PostgreSQL. The results are written to results/.
import { createHash } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { median } from '@services/common/bench/median'
import { lookInto } from '@services/common/bench/postgres'
import { startReport } from '@services/common/bench/report'
import type { Goal } from '@services/common/bench/results'
import { startTimes } from '@services/common/bench/start-times'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { blobKey } from '../src/store/blobs/blob-storage.ts'
import { measureAdmissions } from './admissions.ts'
import { measureArchive } from './archive.ts'
import { type BenchClip, CLIPS, FITTING_CLIPS, makeClip } from './clips.ts'
import { gifsAgainstUsual } from './gifs.ts'
import { bucketRequests, growClips, growWorkers, SHORT_CLIP, storedBytes, storedClip } from './growth.ts'
import { measureImage } from './image.ts'
import { memoryOfPrograms } from './memory.ts'
import { newCopy } from './new-copy.ts'
import { measureQueue } from './queue.ts'
import { licenses } from './recordings.ts'
import { inTurns } from './rounds.ts'
import { type BenchService, download, pathWithoutSandbox, startService, upload, uploadNoise } from './service.ts'
import { missingTools, requestRate, startNginx } from './serving.ts'
import { copiedAgainstEncoded, cpuAgainstHand, manyAtOnce, uploadAgainstHand } from './uploads.ts'
import { measureVariants } from './variants.ts'
import { measureViewCost } from './view-cost.ts'

const MiB = 1024 ** 2

/** About 1.4 MB, as in contract/media.md 6.5. */
const SERVED: BenchClip = { name: 'served', file: 'served.mp4', size: '854x480', seconds: 8 }
const PART = 'bytes=131072-196607'

/** Most concurrent clips of the growth measurement. */
const MAX_AT_ONCE = Number(process.env.BENCH_CLIPS_AT_ONCE || 64)
const AT_ONCE = Math.min(12, 2 * MAX_AT_ONCE)
/** Part of the name that selects the clips; without it, all. */
const isChosen = ({ name }: BenchClip) => name.includes(process.env.BENCH_CLIPS ?? '')
/** Pictures for rows that depend on the size more than on the content. */
const CLIP_480: BenchClip = { name: '480p, 5 s', file: '480.mp4', size: '854x480', seconds: 5 }
const CLIP_1080: BenchClip = { name: '1080p, 5 s', file: '1080.mp4', size: '1920x1080', seconds: 5 }

const report = startReport('media', ['BENCH_ROUNDS', 'BENCH_CLIPS_AT_ONCE', 'BENCH_CLIPS'])
const directory = await mkdtemp(join(tmpdir(), 'bench-media-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'postgres'), database: 'bench' })
const database = lookInto(postgres.url)
const paths = new Map<string, string>()
try {
  const postgresVersion = await database.version()
  await measureImage(report, postgres.url, directory)
  // The first start fills the compile cache, which a deployed image has too.
  const [, ...starts] = await startTimes(4, () => startService(postgres.url, directory))
  const short = await makeClip(directory, SHORT_CLIP)
  const measured = { report, database, newClip: () => newCopy(directory, short), least: Math.min(8, 2 * MAX_AT_ONCE) }
  const settings = { MEDIA_COPY: 'never' }
  const service = await startService(postgres.url, directory, { settings })
  try {
    row('start', 'start to ready', 'the bound', 'ms', [median(starts), 1500], { atMost: 1 })
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    const idle = (await service.memory()).now / MiB
    row('idle-memory', 'idle memory', 'the bound', 'MiB', [idle, 95], { atMost: 1 })
    measureViewCost(report)
    await memoryOfUpload(service)
    await memoryOfPrograms(report, service, directory, process.env.BENCH_CLIPS ?? '')
    await servingAgainstNginx(service)
    await measureArchive(report, service, await makeClip(directory, SERVED))
    for (const clip of CLIPS.filter(isChosen)) {
      const path = await made(clip)
      if (!path) continue
      await uploadAgainstHand({ report, directory }, service, clip, path)
      await storedBytes(measured, clip)
    }
    if (isChosen(CLIP_480))
      await manyAtOnce({ report, directory }, service, await makeClip(directory, CLIP_480), AT_ONCE)
    if (isChosen(CLIP_1080)) {
      const path = await makeClip(directory, CLIP_1080)
      await measureVariants(report, service, () => newCopy(directory, path))
    }
    await gifsAgainstUsual(report, service, directory)
    console.log(`Recordings: ${licenses.join('; ')}.`)
    await growClips(measured, service, MAX_AT_ONCE)
    await storedBytes(measured, SHORT_CLIP)
  } finally {
    await service.stop()
  }
  await growWorkers(measured, postgres.url, directory)
  await bucketRequests(measured, postgres.url, directory)
  const path = await pathWithoutSandbox(directory)
  const encoding = await startService(postgres.url, directory, { path, settings })
  // A database of its own, as each takes the other's jobs from a common one.
  await database.pool.query('create database copying')
  const copying = await startService(postgres.url.replace('/bench', '/copying'), join(directory, 'copying'), { path })
  try {
    for (const clip of [...CLIPS.filter(isChosen), SHORT_CLIP]) {
      const plain = await made(clip)
      if (plain) await cpuAgainstHand({ report, directory }, encoding, clip, plain)
    }
    for (const clip of FITTING_CLIPS.filter(isChosen)) {
      const plain = await made(clip)
      if (plain) await copiedAgainstEncoded({ report, directory }, { copying, encoding }, clip, plain)
    }
  } finally {
    await encoding.stop()
    await copying.stop()
  }
  await measureQueue(report, postgres.url)
  await measureAdmissions(report, postgres.url, directory)
  await storedClip(measured)
  await report.write(new URL('results/', import.meta.url), { postgres: postgresVersion })
} finally {
  await database.close()
  await postgres.stop()
  await rm(directory, { recursive: true, force: true })
  report.print()
}

async function memoryOfUpload(service: BenchService) {
  const idle = (await service.memory()).now
  await service.resetPeak()
  await uploadNoise(service, 157_286_400)
  const { peak } = await service.memory()
  difference('upload-memory', 'peak during a 150 MB upload', 'idle', 'MiB', [peak / MiB, idle / MiB], { atMost: 16 })
}

/** Measures one process on either side with 20 connections, in turn, serving the same stored file. */
async function servingAgainstNginx(service: BenchService) {
  const missing = await missingTools()
  if (missing.length > 0) {
    console.log(`Files against nginx: left out, because ${missing.join(' and ')} is not installed.`)
    return
  }
  const { mp4 } = await upload(service, await makeClip(directory, SERVED))
  const bytes = await download(service, mp4)
  const sha256 = createHash('sha256').update(bytes).digest('hex')
  const nginx = await startNginx(join(directory, 'blobs'), directory)
  try {
    const ours = service.base + new URL(mp4).pathname
    const theirs = `${nginx.base}/${blobKey({ sha256, extension: 'mp4' })}`
    for (const [id, what, range, atLeast] of [
      ['serve-file', `whole file of ${(bytes.length / 1e6).toFixed(1)} MB`, undefined, 0.5],
      ['serve-range', '64 KiB range of it', PART, 0.3],
    ] as const) {
      const sides = async (): Promise<Sides> => [await requestRate(ours, range), await requestRate(theirs, range)]
      await sides()
      row(id, what, 'nginx', 'requests/s', await inTurns(sides), { atLeast })
    }
  } finally {
    await nginx.stop()
  }
}

/** The clip's file, made once; undefined where the package of its recording cannot be had. */
async function made(clip: BenchClip): Promise<string | undefined> {
  const path = paths.get(clip.file) ?? (await makeClip(directory, clip).catch(() => undefined))
  if (path) paths.set(clip.file, path)
  else console.log(`${clip.name}: left out, because its package cannot be had.`)
  return path
}

type Sides = readonly [ours: number, theirs: number]

function row(id: string, what: string, against: string, unit: string, [ours, theirs]: Sides, goal: Goal) {
  report.row({ id, what, against, unit, ours, theirs, compared: 'ratio', goal })
}

function difference(id: string, what: string, against: string, unit: string, [ours, theirs]: Sides, goal: Goal) {
  report.row({ id, what, against, unit, ours, theirs, compared: 'difference', goal })
}
