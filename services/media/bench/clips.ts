import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { tools } from './by-hand.ts'

const run = promisify(execFile)

export interface BenchClip {
  name: string
  file: string
  size: string
  seconds: number
  /** Seed of the pictures; another one makes other pictures of the same kind. */
  seed?: number
}

export const CLIPS: BenchClip[] = [
  { name: '480p, 5 s', file: '480.mp4', size: '854x480', seconds: 5 },
  { name: '720p, 15 s', file: '720.mp4', size: '1280x720', seconds: 15 },
  { name: '1080p, 5 s', file: '1080.mp4', size: '1920x1080', seconds: 5 },
  { name: '2160p, 3 s', file: '2160.mp4', size: '3840x2160', seconds: 3 },
  { name: 'webm 720p, 5 s', file: '720.webm', size: '1280x720', seconds: 5 },
  { name: 'gif 480x320, 12 s', file: '320.gif', size: '480x320', seconds: 12 },
]

/** Key of a clip's figures in the results. */
export const idOf = ({ file }: BenchClip) => file.replace('.', '-')

/** Makes moving pictures with some grain, and a tone: neither the easiest nor the hardest clip to encode. */
export async function makeClip(directory: string, { file, size, seconds, seed }: BenchClip): Promise<string> {
  const path = join(directory, file)
  const isGif = file.endsWith('.gif')
  const rate = isGif ? 10 : 30
  const picture = [
    '-f',
    'lavfi',
    '-i',
    `testsrc2=s=${size}:r=${rate}:d=${seconds},noise=alls=6:allf=t${seed ? `:all_seed=${seed}` : ''}`,
  ]
  const sound = isGif ? [] : ['-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`]
  const codecs = {
    mp4: ['-c:v', 'libx264', '-preset', 'fast', '-pix_fmt', 'yuv420p', '-g', '60', '-c:a', 'aac'],
    webm: ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-b:v', '4M', '-g', '60', '-c:a', 'libopus'],
    gif: [],
  }[file.split('.')[1] as 'mp4' | 'webm' | 'gif']
  await run(tools.ffmpeg.path, ['-v', 'error', '-y', ...picture, ...sound, ...codecs, '-t', String(seconds), path])
  return path
}
