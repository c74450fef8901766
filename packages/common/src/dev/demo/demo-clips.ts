import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

/** Makes an MP4 of 3 s with sound and a GIF of 2 s. New colours each time defeat deduplication. */
export async function makeDemoClips(root: string, folder: string): Promise<{ mp4: string; gif: string }> {
  const ffmpeg = await findFfmpeg(root)
  const hue = ['-vf', `hue=h=${randomInt(360)}`]
  const mp4 = join(folder, 'demo.mp4')
  const gif = join(folder, 'demo.gif')
  const picture = (seconds: number, size: string, rate: number) => [
    '-f',
    'lavfi',
    '-i',
    `testsrc=duration=${seconds}:size=${size}:rate=${rate}`,
  ]
  await run(ffmpeg, [
    ...['-v', 'error', '-y'],
    ...picture(3, '480x270', 25),
    ...['-f', 'lavfi', '-i', 'sine=frequency=440:duration=3'],
    ...hue,
    ...['-c:v', 'libx264', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-shortest', mp4],
  ])
  await run(ffmpeg, ['-v', 'error', '-y', ...picture(2, '320x180', 10), ...hue, gif])
  return { mp4, gif }
}

/** Finds ffmpeg in PATH, else in the packages of services/media. */
async function findFfmpeg(root: string): Promise<string> {
  try {
    await run('ffmpeg', ['-version'])
    return 'ffmpeg'
  } catch {
    const fromMedia = createRequire(join(root, 'services/media/package.json'))
    return (fromMedia('@ffmpeg-installer/ffmpeg') as { path: string }).path
  }
}
