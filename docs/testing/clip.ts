import { execFile } from 'node:child_process'
import { mkdtemp } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

const fromMedia = createRequire(new URL('../../services/media/package.json', import.meta.url))

/** Makes a small clip of one second that differs from those of other guides: equal bytes would share their files. */
export async function makeClip(title: string): Promise<string> {
  const { path: ffmpeg } = fromMedia('@ffmpeg-installer/ffmpeg') as { path: string }
  const clip = join(await mkdtemp(join(tmpdir(), 'guide-clip-')), 'clip.mp4')
  const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=64x48:r=10:d=1', '-c:v', 'libx264', '-pix_fmt', 'yuv420p']
  await run(ffmpeg, ['-v', 'error', ...picture, '-metadata', `title=${title}`, clip])
  return clip
}
