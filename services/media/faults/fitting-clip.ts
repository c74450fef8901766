import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { embeddedTools } from '../test/clips.ts'
import { send } from '../test/service.ts'

const run = promisify(execFile)

let clips = 0

/** Makes a clip that was never sent before and is copied as it is, so that poster and mp4 are published first. */
export async function newFittingClip(seconds: number, size = '320x240'): Promise<Buffer> {
  const directory = await mkdtemp(join(tmpdir(), 'fitting-clip-'))
  const path = join(directory, 'clip.mp4')
  const picture = `testsrc2=s=${size}:r=25:d=${seconds},drawbox=x=${clips++}:w=1:t=fill`
  await run(embeddedTools.ffmpeg.path, [
    ...['-v', 'error', '-f', 'lavfi', '-i', picture, '-f', 'lavfi', '-i', `sine=frequency=440:duration=${seconds}`],
    ...['-c:v', 'libx264', '-preset', 'fast', '-crf', '36', '-pix_fmt', 'yuv420p', '-g', '25', '-c:a', 'aac', path],
  ])
  const bytes = await readFile(path)
  await rm(directory, { recursive: true })
  return bytes
}

/** The files that `wait-for=mp4` publishes before the others. */
export async function firstFiles(base: string, id: string) {
  const answers = await Promise.all(['jpg', 'mp4'].map((kind) => send('GET', `${base}/f/${id}.${kind}`)))
  return answers.map(({ status, headers, bytes }) => ({ status, etag: headers.get('etag'), bytes }))
}
