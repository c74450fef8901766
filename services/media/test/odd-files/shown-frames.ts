import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { embeddedTools } from '../clips.ts'
import { blocksOf, FRAME_SECONDS } from './odd-gifs.ts'

const run = promisify(execFile)

/** The picture in the middle of each frame's time. */
export async function framesIn(path: string, [width, height]: [number, number], frames: number) {
  const decoder = path.endsWith('webm') ? ['-c:v', 'libvpx-vp9'] : []
  const times = ['-vf', `fps=${2 / FRAME_SECONDS}:start_time=0:round=up`]
  const args = ['-v', 'error', ...decoder, '-i', path, ...times, '-pix_fmt', 'rgba', '-f', 'rawvideo', '-']
  const { stdout } = await run(embeddedTools.ffmpeg.path, args, { encoding: 'buffer', maxBuffer: 2 ** 26 })
  const size = 4 * width * height
  return Array.from({ length: frames }, (_, n) =>
    blocksOf(stdout.subarray((2 * n + 1) * size, (2 * n + 2) * size), width),
  )
}
