// Rows about whole uploads: against the commands by hand, and of clips whose own streams are kept.
import { rm } from 'node:fs/promises'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { cpuSeconds } from '@services/common/bench/cpu'
import type { startReport } from '@services/common/bench/report'
import { hashFile, leastCpuByHand, runByHand } from './by-hand.ts'
import { type BenchClip, idOf } from './clips.ts'
import { newCopy } from './new-copy.ts'
import { inTurns, timed } from './rounds.ts'
import { type BenchService, isReady, upload, uploadForMp4 } from './service.ts'

interface Bench {
  report: ReturnType<typeof startReport>
  directory: string
}

/** `service` copies nothing. `plain` is the clip's file. */
export async function uploadAgainstHand(
  { report, directory }: Bench,
  service: BenchService,
  clip: BenchClip,
  plain: string,
) {
  const times = async () => {
    const path = await newCopy(directory, plain)
    const byHand = (gif: 'usual' | 'ours') => timed(() => runByHand(path, join(directory, 'by-hand'), { gif }))
    const usual = await byHand('usual')
    const theirs = await byHand('ours')
    const ours = await timed(() => upload(service, path))
    const again = await timed(() => upload(service, path))
    const hashing = await timed(() => hashFile(path))
    await rm(path)
    return [ours, theirs, usual, again, hashing] as const
  }
  // The first run loads libraries and fills caches, on both sides.
  await times()
  const [ours, theirs, usual, again, hashing] = await inTurns(times)
  const id = idOf(clip)
  const what = `${clip.name}: upload to 201`
  report.row({
    ...{ id: `upload-${id}`, what, against: 'the same files by hand', unit: 'ms', compared: 'ratio' },
    ...{ ours, theirs, goal: { atMost: 1.03 } },
  })
  // A GIF of the source is kept as it is.
  if (!clip.file.endsWith('.gif'))
    report.row({
      ...{ id: `upload-usual-${id}`, what, against: 'by hand, the usual GIF', unit: 'ms', compared: 'ratio' },
      ...{ ours, theirs: usual, goal: {} },
    })
  report.row({
    ...{ id: `again-${id}`, what: `${clip.name}: same bytes again`, against: 'hashing', unit: 'ms' },
    ...{ ours: again, theirs: hashing, compared: 'difference', goal: { atMost: 60 } },
  })
}

/** Measures the whole service: receiving, hashing, posters and checks of the results count too. */
export async function cpuAgainstHand(
  { report, directory }: Bench,
  service: BenchService,
  clip: BenchClip,
  plain: string,
) {
  const [ours, theirs] = await inTurns(async () => {
    const path = await newCopy(directory, plain)
    const { cpu } = await timedWithCpu(service, () => upload(service, path))
    return [cpu, await leastCpuByHand(path, join(directory, 'least'))] as const
  })
  report.row({
    ...{ id: `cpu-${idOf(clip)}`, what: `${clip.name}: CPU`, against: 'one decode and the encoders', unit: 's' },
    // Shorter clips are mostly start-up.
    ...{ ours, theirs, compared: 'ratio', goal: clip.seconds >= 5 ? { atMost: 1.05 } : {} },
  })
}

/** A clip that fits: on a service that copies, on one that does not, and answered once poster and mp4 are there. */
export async function copiedAgainstEncoded(
  { report, directory }: Bench,
  { copying, encoding }: Record<'copying' | 'encoding', BenchService>,
  clip: BenchClip,
  plain: string,
) {
  const sides = async () => {
    const [first, second, third] = [
      await newCopy(directory, plain),
      await newCopy(directory, plain),
      await newCopy(directory, plain),
    ]
    const encoded = await timedWithCpu(encoding, () => upload(encoding, first))
    const copied = await timedWithCpu(copying, () => upload(copying, second))
    let webm = ''
    const early = await timed(async () => {
      webm = (await uploadForMp4(copying, third)).webm
    })
    while (!(await isReady(copying, webm))) await new Promise((resolve) => setTimeout(resolve, 100))
    return [copied.ms, encoded.ms, copied.cpu, encoded.cpu, early] as const
  }
  await sides()
  const [copiedMs, encodedMs, copiedCpu, encodedCpu, early] = await inTurns(sides)
  const id = idOf(clip)
  report.row({
    ...{ id: `copy-${id}`, what: `${clip.name}, fits: upload to 201`, against: 'the same clip encoded', unit: 'ms' },
    ...{ ours: copiedMs, theirs: encodedMs, compared: 'ratio', goal: { atMost: 0.75 } },
  })
  report.row({
    ...{ id: `copy-cpu-${id}`, what: `${clip.name}, fits: CPU`, against: 'the same clip encoded', unit: 's' },
    ...{ ours: copiedCpu, theirs: encodedCpu, compared: 'ratio', goal: { atMost: 0.7 } },
  })
  report.row({
    ...{
      id: `early-${id}`,
      what: `${clip.name}, fits: upload with wait-for=mp4`,
      against: 'upload to 201',
      unit: 'ms',
    },
    ...{ ours: early, theirs: copiedMs, compared: 'ratio', goal: {} },
  })
}

/** One alone runs on more than one core, because the GIF has a program of its own; so its CPU counts, not its time. */
export async function manyAtOnce({ report, directory }: Bench, service: BenchService, plain: string, atOnce: number) {
  const [ours, theirs] = await inTurns(async () => {
    const paths = await Promise.all(Array.from({ length: atOnce }, () => newCopy(directory, plain)))
    const before = cpuSeconds('self')
    await runByHand(paths[0] as string, join(directory, 'alone'), { threads: 1, gif: 'ours' })
    const alone = cpuSeconds('self') - before
    const together = await timed(() => Promise.all(paths.map((path) => upload(service, path))))
    return [(atOnce / together) * 1000, availableParallelism() / alone] as const
  })
  report.row({
    ...{ id: 'many-at-once', what: `${atOnce} clips at once`, against: 'cores / CPU of one alone, one thread' },
    ...{ unit: 'clips/s', ours, theirs, compared: 'ratio', goal: { atLeast: 0.95 } },
  })
}

async function timedWithCpu(service: BenchService, work: () => Promise<unknown>) {
  const before = cpuSeconds(service.pid)
  const ms = await timed(work)
  return { ms, cpu: cpuSeconds(service.pid) - before }
}
