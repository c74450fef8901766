// Lengths, for frames at any times: cameras in low light, screen recorders and calls leave frames out wherever they
// like.
import { createHash } from 'node:crypto'
import { type Random, randomFrom } from '@services/common/testing/seeded-random'
import { describe, expect, test } from 'vitest'
import { clipOf, embeddedTools, tools } from '../../../test/clips.ts'
import { inspect } from '../../../test/inspect.ts'
import { make } from '../../../test/rendition-tests.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { runFfprobe } from '../probe/ffprobe.ts'
import { probe } from '../probe/probe.ts'

interface Pattern {
  fps: number
  frames: number
  dropped: number[]
}

/** Where frames are missing, on a grid of 5 to 120 a second. */
function randomPattern(random: Random): Pattern {
  const fps = random.pick([5, 10, 15, 24, 25, 30, 48, 60, 90, 120])
  const frames = Math.round(fps * (0.6 + random.below(15) / 10))
  const run = (from: number, length: number) => Array.from({ length }, (_, n) => Math.min(frames - 1, from + n))
  const some = () => 1 + random.below(Math.max(1, frames / 5))
  const holes: Record<string, () => number[]> = {
    start: () => run(1, some()),
    middle: () => run(Math.floor(frames / 3), some()),
    end: () => run(Math.max(1, frames - 2 - some()), some()).filter((n) => n < frames - 1 || random.chance(0.5)),
    'all but both ends': () => run(1, frames - 2),
    bursts: () => run(1, frames - 2).filter((n) => n % 10 > 3),
    'one frame in three': () => run(1, frames - 2).filter((n) => n % 3 > 0),
    noise: () => run(1, frames - 2).filter(() => random.chance(0.3)),
  }
  const kinds = [random.pick(Object.keys(holes)), ...(random.chance(0.4) ? [random.pick(Object.keys(holes))] : [])]
  const dropped = new Set(kinds.flatMap((kind) => holes[kind]?.() ?? []))
  // A single frame is a still, whose length is ours.
  if (dropped.size === frames - 1) dropped.delete(frames - 1)
  return { fps, frames, dropped: [...dropped].sort((a, b) => a - b) }
}

function clipWith({ fps, frames, dropped }: Pattern, type: 'mp4' | 'webm'): Promise<string> {
  const source = `testsrc2=s=64x48:r=${fps}:d=${frames / fps}`
  const kept = dropped.length > 0 ? `,select='not(${dropped.map((n) => `eq(n,${n})`).join('+')})'` : ''
  const codec = {
    mp4: ['-c:v', 'libx264', '-preset', 'veryfast', '-pix_fmt', 'yuv420p'],
    webm: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8'],
  }
  const args = ['-f', 'lavfi', '-i', `${source}${kept}`, '-vsync', 'vfr', ...codec[type]]
  const name = createHash('sha256').update(args.join(' ')).digest('hex').slice(0, 16)
  return clipOf(`pattern-${name}.${type}`, args)
}

/** Start of the first frame and end of the last one, as the packets of the file say. */
async function lengthOfPackets(path: string, type: 'mp4' | 'webm'): Promise<number> {
  const demuxer = type === 'mp4' ? 'mov' : 'matroska'
  const { packets = [] } = await runFfprobe(embeddedTools, path, { demuxer, packets: true })
  // `D`: an edit list hides the frame.
  const shown = packets.filter(({ flags }) => !flags.includes('D')).sort((a, b) => startOf(a) - startOf(b))
  const [first, last] = [shown[0], shown.at(-1)]
  if (!first || !last) throw new Error(`${path} has no frame`)
  const ofLast = last.duration_time ?? (startOf(last) - startOf(first)) / (shown.length - 1)
  return startOf(last) - startOf(first) + Number(ofLast)
}

const startOf = ({ pts_time }: { pts_time?: string }) => Number(pts_time)

/** Files of the clip that last longer or shorter than its frames; a GIF is exact to a centisecond. */
async function findWrongLengths(anyTools: MediaTools, path: string, type: 'mp4' | 'webm'): Promise<object | undefined> {
  const seconds = await lengthOfPackets(path, type)
  const info = await probe(anyTools, path)
  const { mp4, webm, gif, warnings } = await make(anyTools, path)
  const files = await Promise.all([mp4, webm, gif].map((file) => inspect(file.path)))
  const [ofMp4 = 0, ofWebm = 0, ofGif = 0] = files.map(({ format }) => Number(format.duration))
  const frame = Math.max(1 / info.fps, 1 / 60)
  const isNear = (length: number, by: number) => Math.abs(length - seconds) <= by + 0.002
  const isRight =
    isNear(info.durationSeconds, 0) && isNear(ofMp4, frame) && isNear(ofWebm, frame) && isNear(ofGif, 0.01)
  if (isRight && warnings.length === 0) return undefined
  return { seconds, meta: info.durationSeconds, ofMp4, ofWebm, ofGif, warnings }
}

const SEED = 21

describe.for([
  ['of the machine', tools],
  ['of 2018', embeddedTools],
] as const)('with the ffmpeg %s', ([, anyTools]) => {
  test.for(['mp4', 'webm'] as const)(
    'mp4, webm, gif and meta of a dozen %s files last as long as their frames',
    async (type) => {
      const random = randomFrom(SEED)
      const wrong: object[] = []
      for (let n = 0; n < 12; n++) {
        const pattern = randomPattern(random)
        const path = await clipWith(pattern, type)
        const found = await findWrongLengths(anyTools, path, type).catch((error) => ({
          refused: String(error.cause ?? error),
        }))
        if (found) wrong.push({ pattern, path, ...found })
      }
      expect(wrong).toEqual([])
    },
  )
})
