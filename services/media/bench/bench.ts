// `pnpm bench`: each figure of design.md section 8 that applies so far, both sides measured in one run on one machine, and
// the ratio. The service runs as a process of its own, as `pnpm start` does, on an embedded PostgreSQL.
import { createHash, randomBytes } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { availableParallelism, tmpdir } from 'node:os'
import { extname, join } from 'node:path'
import { cpuSeconds } from '@services/common/bench/cpu'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { blobKey } from '../src/blobs/blob-storage.ts'
import { compareGifs, hashFile, leastCpuByHand, runByHand } from './by-hand.ts'
import { type BenchClip, CLIPS, makeClip } from './clips.ts'
import { type BenchService, download, pathWithoutSandbox, startService, upload, uploadNoise } from './service.ts'
import { missingTools, requestRate, startNginx } from './serving.ts'

const ROUNDS = Number(process.env.BENCH_ROUNDS || 5)
const MiB = 1024 ** 2

/** A folder of mp4, webm or gif files up to 30 s: what a camera or an artist made is not what a generator makes. */
const FOOTAGE = process.env.BENCH_FOOTAGE ?? ''

const AT_ONCE = 12

/** About 1.4 MB, as in contract/media.md 6.5. */
const SERVED: BenchClip = { name: 'served', file: 'served.mp4', size: '854x480', seconds: 4 }
const PART = 'bytes=131072-196607'

interface Row {
  what: string
  ours: string
  against: string
  result: string
  goal: string
}

const rows: Row[] = []
let copies = 0
const directory = await mkdtemp(join(tmpdir(), 'bench-media-'))
const postgres = await startEmbeddedPostgres({ dataDir: join(directory, 'postgres'), database: 'bench' })
try {
  // Once for the compile cache: a deployed image has it too.
  await (await startService(postgres.url, directory)).stop()
  const service = await startService(postgres.url, directory)
  try {
    row('start to ready, ms', service.readyMs, 1500, 'ratio', '≤ 1')
    await new Promise((resolve) => setTimeout(resolve, 3_000))
    row('idle memory, MiB', (await service.memory()).now / MiB, 120, 'ratio', '≤ 1')
    await memoryOfUpload(service)
    await servingAgainstNginx(service)
    for (const clip of CLIPS) {
      const path = await makeClip(directory, clip)
      await uploadAgainstHand(service, clip, path)
      if (clip.file !== '480.mp4') continue
      // Of a longer one the GIF is made smaller, to be under 8 MB.
      await gifAgainstUsual(service, clip.name, path)
      await manyAtOnce(service, path)
    }
    for (const file of FOOTAGE ? (await readdir(FOOTAGE)).sort() : []) {
      await gifAgainstUsual(service, file, join(FOOTAGE, file))
    }
  } finally {
    await service.stop()
  }
  const unboxed = await startService(postgres.url, directory, await pathWithoutSandbox(directory))
  try {
    for (const clip of CLIPS) await cpuAgainstHand(unboxed, clip, join(directory, clip.file))
  } finally {
    await unboxed.stop()
  }
} finally {
  await postgres.stop()
  await rm(directory, { recursive: true, force: true })
  // Also of a run that failed.
  console.table(Object.fromEntries(rows.map(({ what, ...figures }) => [what, figures])))
}

const results = new URL('results/', import.meta.url)
await mkdir(results, { recursive: true })
await writeFile(new URL('latest.json', results), `${JSON.stringify(rows, null, 2)}\n`)

async function memoryOfUpload(service: BenchService) {
  const idle = (await service.memory()).now
  await service.resetPeak()
  await uploadNoise(service, 157_286_400)
  const { peak } = await service.memory()
  row('peak during a 150 MB upload | idle, MiB', peak / MiB, idle / MiB, 'difference', '≤ 64')
}

/** One process on either side and 20 connections, in turns; the very file that is in the store. */
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
    for (const [what, range, goal] of [
      [`whole file of ${(bytes.length / 1e6).toFixed(1)} MB`, undefined, '≥ 0.35'],
      ['64 KiB range of it', PART, '≥ 0.15'],
    ] as const) {
      const rates: { ours: number; theirs: number }[] = []
      for (let round = 0; round <= ROUNDS; round++) {
        rates.push({ ours: await requestRate(ours, range), theirs: await requestRate(theirs, range) })
      }
      const warm = rates.slice(1)
      const side = (name: 'ours' | 'theirs') => median(warm.map((rate) => rate[name]))
      row(`${what} | nginx, requests/s`, side('ours'), side('theirs'), 'ratio', goal)
    }
  } finally {
    await nginx.stop()
  }
}

/** Alternating, so that what else the machine does meets both; the same pictures in a file that is new each time. */
async function uploadAgainstHand(service: BenchService, { name }: BenchClip, plain: string) {
  const ours: number[] = []
  const byHand: number[] = []
  const again: number[] = []
  const hashing: number[] = []
  for (let round = 0; round <= ROUNDS; round++) {
    const path = await newCopy(plain)
    const times = {
      byHand: await timed(() => runByHand(path, join(directory, `by-hand-${round}`))),
      ours: await timed(() => upload(service, path)),
      again: await timed(() => upload(service, path)),
      hashing: await timed(() => hashFile(path)),
    }
    await rm(path)
    if (round === 0) continue // The first one loads libraries and fills caches, on both sides.
    ours.push(times.ours)
    byHand.push(times.byHand)
    again.push(times.again)
    hashing.push(times.hashing)
  }
  row(`${name}: upload to 201 | by hand, ms`, median(ours), median(byHand), 'ratio', '≤ 1.05')
  row(`${name}: same bytes again | hashing, ms`, median(again), median(hashing), 'difference', '≤ 60')
}

/** All of the service: receiving, hashing, posters and looking at the results count too. */
async function cpuAgainstHand(service: BenchService, { name, seconds }: BenchClip, plain: string) {
  const path = await newCopy(plain)
  const before = cpuSeconds(service.pid)
  await upload(service, path)
  const ours = cpuSeconds(service.pid) - before
  const least = await leastCpuByHand(path, join(directory, 'least'))
  const goal = seconds >= 5 ? '≤ 1.05' : '(clips of 5 s or more)'
  row(`${name}: CPU | one decode and the encoders, ms`, ours * 1000, least * 1000, 'ratio', goal)
}

async function manyAtOnce(service: BenchService, plain: string) {
  const paths = await Promise.all(Array.from({ length: AT_ONCE }, () => newCopy(plain)))
  const alone = await timed(() => runByHand(paths[0] as string, join(directory, 'alone'), 1))
  const together = await timed(() => Promise.all(paths.map((path) => upload(service, path))))
  const [ours, against] = [AT_ONCE / together, availableParallelism() / alone]
  row(
    `${AT_ONCE} clips at once | cores x one alone with one thread, clips an hour`,
    ours * 3.6e6,
    against * 3.6e6,
    'ratio',
    '≥ 0.90',
  )
}

async function gifAgainstUsual(service: BenchService, name: string, plain: string) {
  const ours = join(directory, 'ours.gif')
  const { gif } = await upload(service, await newCopy(plain))
  await writeFile(ours, await download(service, gif))
  const compared = await compareGifs(plain, join(directory, 'gifs'), ours)
  row(
    `${name}: GIF | with the usual palette, KB`,
    compared.ours.bytes / 1000,
    compared.usual.bytes / 1000,
    'ratio',
    '≤ 0.45',
  )
  row(
    `${name}: GIF | with the usual palette, SSIM in hundredths of a dB`,
    compared.ours.ssim * 100,
    compared.usual.ssim * 100,
    'difference',
    '≥ 200',
  )
}

/** Other bytes, the same clip. */
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

/** The same in Matroska (RFC 8794, 11.3.2). */
function voidElement(): Buffer {
  return Buffer.concat([Buffer.from([0xec, 0x90]), randomBytes(16)])
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] as number
}

function row(what: string, ours: number, against: number, kind: 'ratio' | 'difference', goal: string) {
  const result = kind === 'ratio' ? (ours / against).toFixed(2) : (ours - against).toFixed(0)
  rows.push({ what, ours: ours.toFixed(0), against: against.toFixed(0), result, goal })
  // A run takes minutes.
  console.log(`${what}: ${ours.toFixed(0)} | ${against.toFixed(0)}, ${kind} ${result}, goal ${goal}`)
}
