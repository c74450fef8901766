// Clips that take the most memory of those that cameras, editors and encoders make.
import { privateBytesOfDescendants } from '@services/common/bench/cpu'
import { describe, expect, test } from 'vitest'
import { clipOf, embeddedTools, tools } from '../../../test/clips.ts'
import { make } from '../../../test/rendition-tests.ts'
import type { MediaTools } from '../../ffmpeg/binaries.ts'
import { memoryBound } from '../../ffmpeg/memory-bound.ts'

/** Bytes that Node takes to read the GIF writer's TypeScript; the bundle of the image has JavaScript. */
const OF_SOURCES = 10e6

/** Longer than all lookahead, and so many frames that the decoder keeps all references. */
const FRAMES = 24
const moving = (width: number, height: number, options = '') => {
  // Noise of a quarter of the size: its full size would take longer than the test.
  const noise = `testsrc2=s=${width / 4}x${height / 4}:r=30:d=${FRAMES / 30},noise=alls=12:allf=t`
  return ['-f', 'lavfi', '-i', `${noise},scale=${width}:${height}:flags=neighbor${options}`]
}
const manyReferences = ['-c:v', 'libx264', '-preset', 'ultrafast', '-refs', '16', '-bf', '8', '-b_strategy', '0']

const recipes: Record<string, { size: [number, number]; file: string; args: string[] }> = {
  'H.264 of 1080p with 16 references': {
    ...{ size: [1920, 1080], file: 'memory-4-1080.mp4' },
    args: [...moving(1920, 1080), ...manyReferences, '-pix_fmt', 'yuv420p'],
  },
  'HDR of 1080p': {
    ...{ size: [1920, 1080], file: 'memory-4-hdr.mp4' },
    args: [
      ...[...moving(1920, 1080, ',format=yuv420p10le'), '-c:v', 'libx265', '-preset', 'ultrafast', '-tag:v', 'hvc1'],
      ...['-color_primaries', 'bt2020', '-color_trc', 'smpte2084', '-colorspace', 'bt2020nc'],
      ...['-x265-params', 'log-level=none:transfer=smpte2084'],
    ],
  },
  'a GIF of 1080p': {
    ...{ size: [1920, 1080], file: 'memory-plain-1080.gif' },
    args: ['-f', 'lavfi', '-i', `testsrc2=s=1920x1080:r=10:d=${FRAMES / 10}`],
  },
  'H.264 of 2160p with 16 references': {
    ...{ size: [3840, 2160], file: 'memory-4-2160.mp4' },
    args: [...moving(3840, 2160), ...manyReferences, '-pix_fmt', 'yuv420p'],
  },
}

describe.each([
  ['the ffmpeg of this machine', tools, 0],
  // The VP9 encoder of 2018 takes 60 MB more.
  ['the ffmpeg of the npm package', embeddedTools, 60e6],
])('with %s', { tags: 'ffmpeg', timeout: 600_000 }, (_, anyTools, more) => {
  test.each(Object.entries(recipes))('%s stays within the memory of its size', async (_, { size, file, args }) => {
    const peak = await peakBytes(anyTools, await clipOf(file, args))
    const [width, height] = size
    expect(peak).toBeLessThan(memoryBound({ width, height }) + more + OF_SOURCES)
    // Less would mean that the encoders were not seen.
    expect(peak).toBeGreaterThan(100e6)
  })
})

/** Private bytes of all programs at once, on a machine with more cores than an upload uses. */
async function peakBytes(anyTools: MediaTools, path: string): Promise<number> {
  let peak = 0
  const timer = setInterval(() => {
    peak = Math.max(peak, privateBytesOfDescendants(process.pid))
  }, 20)
  try {
    await make(anyTools, path, { threads: 8 })
  } finally {
    clearInterval(timer)
  }
  return peak
}
