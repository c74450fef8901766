import type { startReport } from '@services/common/bench/report'
import { type BenchService, upload } from './service.ts'

/** Each clip has ten stills of its poster and ten frames in the fixed set. */
const CLIPS = 3
/** Milliseconds after which a still feels late on a page. */
const BOUND = 300

const STILLS = ['w160', 'w320', 'w480', 'w640', 'w960'].flatMap((width) => [`${width}.jpg`, `${width}.webp`])
const FRAMES = Array.from({ length: 10 }, (_, half) => `t${half / 2}.jpg`)

/**
 * Measures the first request of each still of 1080p clips of 5 s, one after the other: from the request to the last
 * byte.
 */
export async function measureVariants(
  report: ReturnType<typeof startReport>,
  service: BenchService,
  newClip: () => Promise<string>,
): Promise<void> {
  const times = { stills: [] as number[], frames: [] as number[] }
  for (let clip = 0; clip < CLIPS; clip++) {
    const { mp4 } = await upload(service, await newClip())
    const folder = service.base + new URL(mp4).pathname.replace(/\.mp4$/, '')
    for (const name of STILLS) times.stills.push(await firstRequest(`${folder}/${name}`))
    for (const name of FRAMES) times.frames.push(await firstRequest(`${folder}/${name}`))
  }
  const row = { against: 'the bound', unit: 'ms', theirs: BOUND, compared: 'ratio', goal: { atMost: 1 } } as const
  report.row({ ...row, id: 'variant-stills', what: '1080p: still of a poster, p95', ours: p95(times.stills) })
  report.row({ ...row, id: 'variant-frames', what: '1080p: still of a frame, p95', ours: p95(times.frames) })
}

async function firstRequest(address: string): Promise<number> {
  const startedAt = performance.now()
  const answer = await fetch(address)
  await answer.arrayBuffer()
  if (answer.status !== 200) throw new Error(`${answer.status} from ${address}`)
  return performance.now() - startedAt
}

const p95 = (times: number[]): number => times.sort((a, b) => a - b)[Math.ceil(0.95 * times.length) - 1] as number
