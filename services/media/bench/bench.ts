// `pnpm bench`: measures each applicable figure of design.md section 8 for both sides, in one run on one machine, with the
// ratio; and how the cost grows with clips and workers (growth.ts). The service runs as a separate process, as with
// `pnpm start`, on an embedded PostgreSQL. The results are written to results/.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { cpuSeconds } from '@services/common/bench/cpu'
import { median } from '@services/common/bench/median'
import { lookInto } from '@services/common/bench/postgres'
import { startReport } from '@services/common/bench/report'
import type { Goal } from '@services/common/bench/results'
import { startTimes } from '@services/common/bench/start-times'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { blobKey } from '../src/store/blobs/blob-storage.ts'
import { measureAdmissions } from './admissions.ts'
import { compareGifs, hashFile, leastCpuByHand, runByHand } from './by-hand.ts'
import { type BenchClip, CLIPS, idOf, makeClip } from './clips.ts'
import { bucketRequests, growClips, growWorkers, SHORT_CLIP, storedBytes, storedClip } from './growth.ts'
import { measureImage } from './image.ts'
import { memoryOfPrograms } from './memory.ts'
import { measureQueue } from './queue.ts'
import { fetchRecordings } from './recordings.ts'
import { type BenchService, download, pathWithoutSandbox, startService, upload, uploadNoise } from './service.ts'
import { missingTools, requestRate, startNginx } from './serving.ts'
import { measureVariants } from './variants.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS || 5)
const MiB = 1024 ** 2

/** Folder of mp4, webm or gif files up to 30 s: real recordings encode differently from generated clips. */
const FOOTAGE = process.env.BENCH_FOOTAGE ?? ''

/** About 1.4 MB, as in contract/media.md 6.5. */
const SERVED: BenchClip = { name: 'served', file: 'served.mp4', size: '854x480', seconds: 8 }
const PART = 'bytes=131072-196607'

/** Most concurrent clips of the growth measurement. */
const MOST_AT_ONCE = Number(process.env.BENCH_CLIPS_AT_ONCE || 64)
const AT_ONCE = Math.min(12, 2 * MOST_AT_ONCE)
/** Part of the name that selects the clips; without it, all. */
const CHOSEN = CLIPS.filter(({ name }) => name.includes(process.env.BENCH_CLIPS ?? ''))

const report = startReport('media', ['BENCH_ROUNDS', 'BENCH_CLIPS_AT_ONCE', 'BENCH_CLIPS'])
let copies = 0
const directory = await mkdtemp(join(tmpdir(), 'bench-media-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'postgres'), database: 'bench' })
const database = lookInto(postgres.url)
try {
  const postgresVersion = await database.version()
  await measureImage(report, postgres.url, directory)
  // The first start fills the compile cache, which a deployed image has too.
  const [, ...starts] = await startTimes(4, () => startService(postgres.url, directory))
  const short = await makeClip(directory, SHORT_CLIP)
  const measured = { report, database, newClip: () => newCopy(short), least: Math.min(8, 2 * MOST_AT_ONCE) }
  const service = await startService(postgres.url, directory)
  try {
    row('start', 'start to ready', 'the bound', 'ms', [median(starts), 1500], { atMost: 1 })
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    const idle = (await service.memory()).now / MiB
    row('idle-memory', 'idle memory', 'the bound', 'MiB', [idle, 120], { atMost: 1 })
    await memoryOfUpload(service)
    await memoryOfPrograms(report, service, directory, process.env.BENCH_CLIPS ?? '')
    await servingAgainstNginx(service)
    for (const clip of CHOSEN) {
      const path = await makeClip(directory, clip)
      await uploadAgainstHand(service, clip, path)
      await storedBytes(measured, clip)
      if (clip.file === '1080.mp4') await measureVariants(report, service, () => newCopy(path))
      if (clip.file === '480.mp4') await manyAtOnce(service, path)
    }
    await gifsAgainstUsual(service)
    await growClips(measured, service, MOST_AT_ONCE)
    await storedBytes(measured, SHORT_CLIP)
  } finally {
    await service.stop()
  }
  await growWorkers(measured, postgres.url, directory)
  await bucketRequests(measured, postgres.url, directory)
  const unboxed = await startService(postgres.url, directory, { path: await pathWithoutSandbox(directory) })
  try {
    for (const clip of [...CHOSEN, SHORT_CLIP]) await cpuAgainstHand(unboxed, clip, join(directory, clip.file))
  } finally {
    await unboxed.stop()
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
  difference('upload-memory', 'peak during a 150 MB upload', 'idle', 'MiB', [peak / MiB, idle / MiB], { atMost: 64 })
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
      ['serve-file', `whole file of ${(bytes.length / 1e6).toFixed(1)} MB`, undefined, 0.35],
      ['serve-range', '64 KiB range of it', PART, 0.15],
    ] as const) {
      const sides = async (): Promise<Sides> => [await requestRate(ours, range), await requestRate(theirs, range)]
      await sides()
      row(id, what, 'nginx', 'requests/s', await inTurns(sides), { atLeast })
    }
  } finally {
    await nginx.stop()
  }
}

/** Makes a new file with the same pictures. */
async function uploadAgainstHand(service: BenchService, clip: BenchClip, plain: string) {
  const { name } = clip
  const times = async () => {
    const path = await newCopy(plain)
    const byHand = await timed(() => runByHand(path, join(directory, 'by-hand')))
    const ours = await timed(() => upload(service, path))
    const again = await timed(() => upload(service, path))
    const hashing = await timed(() => hashFile(path))
    await rm(path)
    return [ours, byHand, again, hashing] as const
  }
  // The first run loads libraries and fills caches, on both sides.
  await times()
  const [ours, byHand, again, hashing] = await inTurns(times)
  row(`upload-${idOf(clip)}`, `${name}: upload to 201`, 'by hand', 'ms', [ours, byHand], { atMost: 1.05 })
  difference(`again-${idOf(clip)}`, `${name}: same bytes again`, 'hashing', 'ms', [again, hashing], { atMost: 60 })
}

/** Measures the whole service: receiving, hashing, posters and checks of the results count too. */
async function cpuAgainstHand(service: BenchService, clip: BenchClip, plain: string) {
  const { name, seconds } = clip
  const sides = await inTurns(async (): Promise<Sides> => {
    const path = await newCopy(plain)
    const before = cpuSeconds(service.pid)
    await upload(service, path)
    const ours = cpuSeconds(service.pid) - before
    return [ours, await leastCpuByHand(path, join(directory, 'least'))]
  })
  const goal = seconds >= 5 ? { atMost: 1.05 } : {} // shorter clips are mostly start-up
  row(`cpu-${idOf(clip)}`, `${name}: CPU`, 'one decode and the encoders', 's', sides, goal)
}

async function manyAtOnce(service: BenchService, plain: string) {
  const sides = await inTurns(async (): Promise<Sides> => {
    const paths = await Promise.all(Array.from({ length: AT_ONCE }, () => newCopy(plain)))
    const alone = await timed(() => runByHand(paths[0] as string, join(directory, 'alone'), 1))
    const together = await timed(() => Promise.all(paths.map((path) => upload(service, path))))
    return [(AT_ONCE / together) * 1000, (availableParallelism() / alone) * 1000]
  })
  const against = 'cores x one alone with one thread'
  row('many-at-once', `${AT_ONCE} clips at once`, against, 'clips/s', sides, { atLeast: 0.9 })
}

async function gifsAgainstUsual(service: BenchService) {
  const { found, missing, licenses } = await fetchRecordings(directory)
  for (const name of missing) console.log(`GIFs of ${name}: left out, because the package cannot be had.`)
  const recordings = found.map(({ name, path }) => ({ name, path }))
  for (const file of FOOTAGE ? (await readdir(FOOTAGE)).sort() : [])
    recordings.push({ name: file, path: join(FOOTAGE, file) })
  const all: Awaited<ReturnType<typeof compareGifs>>[] = []
  for (const { name, path } of recordings) {
    const ours = join(directory, 'ours.gif')
    const { gif } = await upload(service, await newCopy(path))
    await writeFile(ours, await download(service, gif))
    const compared = await compareGifs(path, join(directory, 'gifs'), ours)
    all.push(compared)
    gifRows(name, compared, { bytes: 0.95, ssim: -1, flicker: 1.3 })
  }
  if (all.length === 0) return
  const mean = (side: 'ours' | 'usual') => ({
    bytes: geometricMean(all.map((compared) => compared[side].bytes)),
    ssim: all.reduce((sum, compared) => sum + compared[side].ssim, 0) / all.length,
    flicker: geometricMean(all.map((compared) => compared[side].flicker)),
  })
  gifRows('mean of all', { ours: mean('ours'), usual: mean('usual') }, { bytes: 0.55, ssim: 0, flicker: 1 })
  console.log(`Recordings: ${licenses.join('; ')}.`)
}

const geometricMean = (values: number[]) =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)

function gifRows(
  name: string,
  { ours, usual }: Awaited<ReturnType<typeof compareGifs>>,
  goal: { bytes: number; ssim: number; flicker: number },
) {
  const id = name.replaceAll(/[^0-9A-Za-z]+/g, '-')
  const against = 'with the usual palette'
  const bytes = [ours.bytes / 1000, usual.bytes / 1000] as const
  row(`gif-bytes-${id}`, `GIF of ${name}`, against, 'KB', bytes, { atMost: goal.bytes })
  const ssim = [ours.ssim, usual.ssim] as const
  difference(`gif-ssim-${id}`, `SSIM of the GIF of ${name}`, against, 'dB', ssim, { atLeast: goal.ssim })
  const flicker = [ours.flicker, usual.flicker] as const
  row(`gif-flicker-${id}`, `flicker of the GIF of ${name}`, against, 'steps', flicker, { atMost: goal.flicker })
}

/** Changes the bytes but not the clip. */
async function newCopy(plain: string): Promise<string> {
  const path = join(directory, `new-${copies++}${extname(plain)}`)
  const bytes = await readFile(plain)
  const ending = { '.mp4': freeBox, '.webm': voidElement, '.gif': () => randomBytes(16) }[extname(plain)]
  await writeFile(path, Buffer.concat([bytes, ending?.() ?? Buffer.alloc(0)]))
  return path
}

/** A box that players skip (ISO/IEC 14496-12 8.1.2). */
function freeBox(): Buffer {
  return Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('free'), randomBytes(16)])
}

/** An element that players skip in Matroska (RFC 8794, 11.3.2). */
function voidElement(): Buffer {
  return Buffer.concat([Buffer.from([0xec, 0x90]), randomBytes(16)])
}

/** Measures all sides in each round, so that other load on the machine affects all; returns the median of each. */
async function inTurns<Figures extends readonly number[]>(measure: () => Promise<Figures>): Promise<Figures> {
  const rounds: Figures[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await measure())
  const medians = rounds[0]?.map((_, side) => median(rounds.map((figures) => figures[side] as number)))
  return medians as readonly number[] as Figures
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

type Sides = readonly [ours: number, theirs: number]

function row(id: string, what: string, against: string, unit: string, [ours, theirs]: Sides, goal: Goal) {
  report.row({ id, what, against, unit, ours, theirs, compared: 'ratio', goal })
}

function difference(id: string, what: string, against: string, unit: string, [ours, theirs]: Sides, goal: Goal) {
  report.row({ id, what, against, unit, ours, theirs, compared: 'difference', goal })
}
