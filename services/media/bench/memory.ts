import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { privateBytesOfDescendants } from '@services/common/bench/cpu'
import type { startReport } from '@services/common/bench/report'
import { memoryBound } from '../src/ffmpeg/memory-bound.ts'
import { tools } from './by-hand.ts'
import { type BenchService, upload } from './service.ts'

const run = promisify(execFile)
const MB = 1_000_000

interface MemoryClip {
  name: string
  file: string
  size: readonly [width: number, height: number]
  rate: number
  seconds: number
  codec: string
}

const h264 = '-c:v libx264 -preset superfast -pix_fmt yuv420p -g 60'
const vp9 = '-c:v libvpx-vp9 -deadline realtime -cpu-used 8 -row-mt 1 -b:v 8M -pix_fmt yuv420p'
const manyReferences = '-c:v libx264 -preset ultrafast -refs 16 -bf 8 -b_strategy 0'
const hdr =
  '-pix_fmt yuv420p10le -c:v libx265 -preset ultrafast -tag:v hvc1 -color_primaries bt2020 -color_trc smpte2084 ' +
  '-colorspace bt2020nc -x265-params log-level=none:transfer=smpte2084'
const av1 = '-pix_fmt yuv420p -c:v libsvtav1 -preset 12'
const [p480, p720, p1080, p1440, p2160] = [
  [854, 480],
  [1280, 720],
  [1920, 1080],
  [2560, 1440],
  [3840, 2160],
] as const

/** Memory is reached within a second; the clip of 30 s shows that it then stays. */
const MEMORY_CLIPS: MemoryClip[] = [
  { name: '480p', file: 'm-480.mp4', size: p480, rate: 30, seconds: 2, codec: h264 },
  { name: '720p', file: 'm-720.mp4', size: p720, rate: 30, seconds: 2, codec: h264 },
  { name: '720p, 30 s', file: 'm-720-30.mp4', size: p720, rate: 30, seconds: 30, codec: h264 },
  { name: '1080p', file: 'm-1080.mp4', size: p1080, rate: 30, seconds: 2, codec: h264 },
  { name: '1080p, 60 a second', file: 'm-1080-60.mp4', size: p1080, rate: 60, seconds: 2, codec: h264 },
  { name: '1080p, standing', file: 'm-standing.mp4', size: [1080, 1920], rate: 30, seconds: 2, codec: h264 },
  { name: '1080p, crf 10', file: 'm-1080-rich.mp4', size: p1080, rate: 30, seconds: 2, codec: `${h264} -crf 10` },
  {
    ...{ name: '1080p, 16 references', file: 'm-1080-refs.mp4', size: p1080, rate: 30, seconds: 2 },
    codec: `${manyReferences} -pix_fmt yuv420p`,
  },
  { name: '1080p, HDR', file: 'm-1080-hdr.mp4', size: p1080, rate: 30, seconds: 2, codec: hdr },
  { name: '1080p, AV1', file: 'm-1080-av1.mp4', size: p1080, rate: 30, seconds: 2, codec: av1 },
  { name: '1080p, VP9', file: 'm-1080.webm', size: p1080, rate: 30, seconds: 2, codec: vp9 },
  { name: '1080p, GIF', file: 'm-1080.gif', size: p1080, rate: 10, seconds: 3, codec: '' },
  { name: '1440p', file: 'm-1440.mp4', size: p1440, rate: 30, seconds: 2, codec: h264 },
  { name: '2160p', file: 'm-2160.mp4', size: p2160, rate: 30, seconds: 2, codec: h264 },
  {
    ...{ name: '2160p, 16 references', file: 'm-2160-refs.mp4', size: p2160, rate: 30, seconds: 2 },
    codec: `${manyReferences} -pix_fmt yuv420p`,
  },
]

/**
 * Measures the private bytes of all programs of one upload at once, and the resident ones of the service, on an idle
 * machine. Skips clips whose encoder the machine's ffmpeg lacks. `chosen` is a part of the names.
 */
export async function memoryOfPrograms(
  report: ReturnType<typeof startReport>,
  service: BenchService,
  directory: string,
  chosen: string,
) {
  for (const clip of MEMORY_CLIPS.filter(({ name }) => name.includes(chosen))) {
    const path = await makeMemoryClip(directory, clip).catch(() => undefined)
    if (!path) {
      console.log(`Memory of ${clip.name}: left out, because ffmpeg cannot make the clip.`)
      continue
    }
    await service.resetPeak()
    let peak = 0
    const timer = setInterval(() => {
      peak = Math.max(peak, privateBytesOfDescendants(service.pid))
    }, 20)
    await upload(service, path).finally(() => clearInterval(timer))
    const [width, height] = clip.size
    const id = clip.file.replace('.', '-')
    report.row({
      ...{ id: `programs-${id}`, what: `${clip.name}: peak memory of the programs`, against: 'the bound', unit: 'MB' },
      ...{ ours: peak / MB, theirs: memoryBound({ width, height }) / MB, compared: 'ratio', goal: { atMost: 1 } },
    })
    const own = (await service.memory()).peak / MB
    report.figure(`service-${id}`, {
      what: `${clip.name}: peak memory of the service meanwhile`,
      unit: 'MB',
      value: own,
    })
  }
}

async function makeMemoryClip(directory: string, { file, size, rate, seconds, codec }: MemoryClip): Promise<string> {
  const path = join(directory, file)
  const grain = file.endsWith('.gif') ? '' : ',noise=alls=6:allf=t'
  const picture = ['-f', 'lavfi', '-i', `testsrc2=s=${size.join('x')}:r=${rate}:d=${seconds}${grain}`]
  await run(tools.ffmpeg.path, ['-v', 'error', '-y', ...picture, ...codec.split(' ').filter(Boolean), path])
  return path
}
