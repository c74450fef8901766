import type { startReport } from '@services/common/bench/report'
import { inTurns } from './rounds.ts'
import { type BenchService, TOKEN, upload } from './service.ts'

const CLIPS = 100

/** Measures an archive of a hundred clips against the same files one after the other. */
export async function measureArchive(
  report: ReturnType<typeof startReport>,
  service: BenchService,
  path: string,
): Promise<void> {
  const files: string[] = []
  // The same bytes each time, which are made once.
  for (let n = 0; n < CLIPS; n++) files.push(service.base + new URL((await upload(service, path)).mp4).pathname)
  const ids = files.map((file) => /\/f\/(\w+)\./.exec(file)?.[1])
  const archive = `${service.base}/media/archive?ids=${ids}`
  const bytesOf = async (url: string) => {
    const answer = await fetch(url, { headers: { token: TOKEN } })
    if (!answer.ok) throw new Error(`${url} answered ${answer.status}`)
    return (await answer.arrayBuffer()).byteLength
  }
  const speedOf = async (urls: readonly string[]) => {
    const startedAt = performance.now()
    let bytes = 0
    for (const url of urls) bytes += await bytesOf(url)
    return bytes / 1000 / (performance.now() - startedAt)
  }
  const sides = async () => [await speedOf([archive]), await speedOf(files)] as const
  const [ours, theirs] = await inTurns(sides)
  report.row({
    ...{ id: 'archive', what: `archive of ${CLIPS} clips`, against: 'one file after the other', unit: 'MB/s' },
    ...{ ours, theirs, compared: 'ratio', goal: { atLeast: 0.5 } },
  })
}
