// Rows about the bytes and the quality of GIFs, of real recordings only.
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { startReport } from '@services/common/bench/report'
import { compareGifs } from './by-hand.ts'
import { newCopy } from './new-copy.ts'
import { fetchRecordings } from './recordings.ts'
import { type BenchService, download, upload } from './service.ts'

type Report = ReturnType<typeof startReport>
type Compared = Awaited<ReturnType<typeof compareGifs>>

/** Folder of more mp4, webm or gif files, up to 30 s each. */
const FOOTAGE = process.env.BENCH_FOOTAGE ?? ''

export async function gifsAgainstUsual(report: Report, service: BenchService, directory: string): Promise<void> {
  const { found, missing } = await fetchRecordings(directory)
  for (const name of missing) console.log(`GIFs of ${name}: left out, because the package cannot be had.`)
  for (const file of FOOTAGE ? (await readdir(FOOTAGE)).sort() : [])
    found.push({ name: file, path: join(FOOTAGE, file) })
  const all: Compared[] = []
  for (const { name, path } of found) {
    const ours = join(directory, 'ours.gif')
    const { gif } = await upload(service, await newCopy(directory, path))
    await writeFile(ours, await download(service, gif))
    const compared = await compareGifs(path, join(directory, 'gifs'), ours)
    all.push(compared)
    gifRows(report, name, compared, { bytes: 0.95, ssim: -1, flicker: 1.3 })
  }
  if (all.length === 0) return
  const mean = (side: 'ours' | 'usual') => ({
    bytes: geometricMean(all.map((compared) => compared[side].bytes)),
    ssim: all.reduce((sum, compared) => sum + compared[side].ssim, 0) / all.length,
    flicker: geometricMean(all.map((compared) => compared[side].flicker)),
  })
  gifRows(report, 'mean of all', { ours: mean('ours'), usual: mean('usual') }, { bytes: 0.55, ssim: 0, flicker: 1 })
}

const geometricMean = (values: number[]) =>
  Math.exp(values.reduce((sum, value) => sum + Math.log(value), 0) / values.length)

function gifRows(
  report: Report,
  name: string,
  { ours, usual }: Compared,
  goal: { bytes: number; ssim: number; flicker: number },
) {
  const id = name.replaceAll(/[^0-9A-Za-z]+/g, '-')
  const against = 'with the usual palette'
  report.row({
    ...{ id: `gif-bytes-${id}`, what: `GIF of ${name}`, against, unit: 'KB', compared: 'ratio' },
    ...{ ours: ours.bytes / 1000, theirs: usual.bytes / 1000, goal: { atMost: goal.bytes } },
  })
  report.row({
    ...{ id: `gif-ssim-${id}`, what: `SSIM of the GIF of ${name}`, against, unit: 'dB', compared: 'difference' },
    ...{ ours: ours.ssim, theirs: usual.ssim, goal: { atLeast: goal.ssim } },
  })
  report.row({
    ...{ id: `gif-flicker-${id}`, what: `flicker of the GIF of ${name}`, against, unit: 'steps', compared: 'ratio' },
    ...{ ours: ours.flicker, theirs: usual.flicker, goal: { atMost: goal.flicker } },
  })
}
