import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { tools } from './by-hand.ts'
import { copyRecording, type Recording } from './recordings.ts'

const run = promisify(execFile)

interface MadeClip {
  name: string
  file: string
  size: string
  seconds: number
  /** Seed of the pictures; another one makes other pictures of the same kind. */
  seed?: number
}

interface RecordedClip {
  name: string
  file: string
  seconds: number
  recording: Recording
}

export type BenchClip = MadeClip | RecordedClip

const FILM: BenchClip = {
  ...{ name: 'film, 640x272, 10 s', file: 'film.mp4', seconds: 10 },
  recording: { of: 'film, moving camera' },
}

/** Recordings as they are, and generated pictures of the kinds without a recording. */
export const CLIPS: BenchClip[] = [
  FILM,
  { name: 'animation, 720p, 5 s', file: 'animation.mp4', seconds: 5.28, recording: { of: 'rendered animation' } },
  { name: 'screen, 720p, 8 s', file: 'screen.mp4', seconds: 8.3, recording: { of: 'screen recording' } },
  { name: 'phone, 1080p, 5 s', file: 'phone.mp4', seconds: 5, recording: { of: 'phone, dog', repeatedTo: 5 } },
  { name: '2160p, 3 s', file: '2160.mp4', size: '3840x2160', seconds: 3 },
  { name: 'webm 720p, 5 s', file: '720.webm', size: '1280x720', seconds: 5 },
  { name: 'gif 480x320, 12 s', file: '320.gif', size: '480x320', seconds: 12 },
]

/** Clips whose streams fit; those of 720p are encoded anew with a keyframe every 2 s, as sites write them. */
export const FITTING_CLIPS: BenchClip[] = [
  FILM,
  { name: 'globe, 480x270, 30 s', file: 'globe.mp4', seconds: 30, recording: { of: 'slow globe, dark' } },
  {
    ...{ name: 'animation, 720p, 5 s', file: 'animation-fits.mp4', seconds: 5.28 },
    recording: { of: 'rendered animation', fits: true },
  },
  {
    ...{ name: 'screen, 720p, 8 s', file: 'screen-fits.mp4', seconds: 8.3 },
    recording: { of: 'screen recording', fits: true },
  },
]

/** Key of a clip's figures in the results. */
export const idOf = ({ file }: BenchClip) => file.replace('.', '-')

/**
 * Puts the clip into the folder. It is a recording, or moving pictures with some grain and a tone, which are neither
 * the easiest nor the hardest to encode. Throws where the package of the recording cannot be had.
 */
export async function makeClip(directory: string, clip: BenchClip): Promise<string> {
  const path = join(directory, clip.file)
  if ('recording' in clip) await copyRecording(clip.recording, path)
  else await makePictures(clip, path)
  return path
}

async function makePictures({ file, size, seconds, seed }: MadeClip, path: string): Promise<void> {
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
}
