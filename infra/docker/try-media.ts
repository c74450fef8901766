import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Image } from './build-root.ts'
import { runInside } from './container.ts'
import { expectStatus, type Trial } from './trial.ts'

/** Makes a token by the command line and a clip by the image's own ffmpeg, uploads it and looks at the four files. */
export async function tryMedia(image: Image, { base, env, mounts, data, say }: Trial): Promise<void> {
  const inside = async (...command: string[]) => {
    const ended = await runInside(image, env, mounts, command)
    if (ended.code !== 0) throw new Error(`${command.join(' ')} ended with ${ended.code}: ${ended.errors}`)
    return ended.output.trim()
  }
  const token = await inside('node', 'src/cli.ts', 'tokens', 'create', '--name', 'check', '--scopes', 'write,read')
  const picture = 'testsrc=duration=2:size=320x180:rate=25'
  await inside(...['ffmpeg', '-v', 'error', '-f', 'lavfi', '-i', picture, '-pix_fmt', 'yuv420p', '/data/clip.mp4'])
  const form = new FormData()
  form.set('file', new Blob([await readFile(join(data, 'clip.mp4'))], { type: 'video/mp4' }), 'clip.mp4')
  const started = performance.now()
  const answer = await fetch(`${base}/media/upload`, { method: 'POST', headers: { token }, body: form })
  const clip = (await expectStatus(answer, 201)) as Record<string, string>
  say('uploaded to 201', `${Math.round(performance.now() - started)} ms, ${answer.headers.get('x-media-state')}`)
  const id = answer.headers.get('location')?.split('/').at(-1) ?? ''
  for (const extension of ['gif', 'jpg', 'mp4', 'webm']) {
    const file = await fetch(`${base}/f/${id}.${extension}`)
    const bytes = await file.arrayBuffer()
    if (file.status !== 200 || bytes.byteLength < 500)
      throw new Error(`${extension}: ${file.status} ${JSON.stringify(clip)}`)
    say(`/f/{id}.${extension}`, `${file.headers.get('content-type')}, ${bytes.byteLength} bytes`)
  }
  say('ffmpeg', (await inside('ffmpeg', '-version')).split(' ')[2] ?? '')
  say('yt-dlp', await inside('yt-dlp', '--version'))
}
