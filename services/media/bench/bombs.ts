// `node bench/bombs.ts`: measures a clip of 1 s while ten of the most expensive clips that the service accepts, of another
// token, run or wait. The service has its defaults and runs as a separate process, as in bench.ts.
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import { gif } from '../test/gif-bytes.ts'
import { tools } from './by-hand.ts'
import { makeClip } from './clips.ts'
import { type BenchService, startService, TOKEN } from './service.ts'

const BOMBS = 10
const run = promisify(execFile)

const directory = await mkdtemp(join(tmpdir(), 'bench-bombs-'))
try {
  const clips = await Promise.all(
    [1, 2, 3].map((seed) => makeClip(directory, { name: '', file: `${seed}.mp4`, size: '640x360', seconds: 1, seed })),
  )
  const [warmUp, ...measured] = await Promise.all(clips.map((path) => readFile(path)))
  const scenarios = {
    'nothing else': [],
    'ten of 4K, 30 s': await longVideos(),
    'ten GIFs at their limit': largeGifs(),
  }
  for (const [name, bombs] of Object.entries(scenarios)) {
    const folder = await mkdtemp(join(directory, 'service-'))
    const postgres = await startEmbeddedPostgres({ dataDir: join(folder, 'postgres'), database: 'bench' })
    const service = await startService(postgres.url, folder)
    const tokens = [await newToken(service), await newToken(service)] as const
    try {
      await upload(service, tokens[0], warmUp as Buffer)
      for (const bomb of bombs) await upload(service, tokens[1], bomb, 'respond-async')
      const seconds = []
      for (const [n, bytes] of measured.entries()) {
        const startedAt = performance.now()
        await upload(service, tokens[0], different(bytes, `${name} ${n}`))
        seconds.push(((performance.now() - startedAt) / 1000).toFixed(1))
      }
      console.log(`1 s clip beside ${name}: ${seconds.join(' and ')} s`)
    } finally {
      await service.stop()
      await postgres.stop()
    }
  }
} finally {
  await rm(directory, { recursive: true, force: true })
}

/** 8e9 pixels in all frames: two seconds, over and over. */
async function longVideos(): Promise<Buffer[]> {
  const short = await makeClip(directory, { name: '', file: '4k.mp4', size: '3840x2160', seconds: 2 })
  const path = join(directory, 'bomb.mp4')
  await run(tools.ffmpeg.path, [
    '-v',
    'error',
    '-y',
    '-stream_loop',
    '14',
    '-i',
    short,
    '-c',
    'copy',
    '-t',
    '29.9',
    path,
  ])
  const bytes = await readFile(path)
  return Array.from({ length: BOMBS }, (_, n) => different(bytes, String(n)))
}

/** 1e9 pixels; the uneven delays ask for 50 frames a second. */
function largeGifs(): Buffer[] {
  return Array.from({ length: BOMBS }, (_, n) =>
    gif(
      1920,
      1080,
      Array.from({ length: 480 }, (_, frame) => ({
        ...{ delay: frame % 2 ? 5 : 7, width: 8, height: 8 },
        ...{ left: (frame * 8) % 1900, top: n * 8, color: (frame % 2) as 0 | 1 },
      })),
    ),
  )
}

/** Changes the bytes but not the clip, by a box that readers skip. */
function different(mp4: Buffer, text: string): Buffer {
  const size = Buffer.alloc(4)
  size.writeUInt32BE(8 + text.length)
  return Buffer.concat([mp4, size, Buffer.from(`free${text}`)])
}

async function newToken({ base }: BenchService): Promise<string> {
  const answer = await fetch(`${base}/tokens`, {
    method: 'POST',
    headers: { token: TOKEN, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'bench' }),
  })
  if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`)
  const { success } = (await answer.json()) as { success: { token: string } }
  return success.token
}

async function upload({ base }: BenchService, token: string, bytes: Buffer, prefer = 'wait=600'): Promise<void> {
  const form = new FormData()
  form.append('file', new Blob([new Uint8Array(bytes)]), 'clip')
  const answer = await fetch(`${base}/media/upload`, { method: 'POST', headers: { token, prefer }, body: form })
  if (answer.status !== 201) throw new Error(`${answer.status} ${await answer.text()}`)
}
