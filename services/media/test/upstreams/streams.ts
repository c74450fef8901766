import { execFile } from 'node:child_process'
import { createHash, randomUUID } from 'node:crypto'
import { access, mkdir, readFile, rename, rm } from 'node:fs/promises'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createFarServer } from '@services/common/testing/http/far-server'
import { embeddedTools } from '../clips.ts'

const run = promisify(execFile)

const picture = ['-f', 'lavfi', '-i', 'testsrc2=s=64x48:r=10:d=2']
const tone = ['-f', 'lavfi', '-i', 'sine=frequency=440:duration=2']
const coded = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-g', '5', '-c:a', 'aac', '-ac', '1']
const hls = ['-f', 'hls', '-hls_time', '0.5', '-hls_playlist_type', 'vod']
const dash = ['-f', 'dash', '-seg_duration', '0.5']
const webm = ['-c:v', 'libvpx', '-deadline', 'realtime', '-cpu-used', '8', '-g', '5', '-c:a', 'libopus']

/** Two seconds each, in half seconds; pictures and sound as HLS and DASH have them. */
const recipes = {
  'ts.m3u8': [...picture, ...tone, ...coded, ...hls],
  'ranges.m3u8': [...[...picture, ...tone, ...coded, ...hls, '-hls_segment_type', 'fmp4', '-hls_flags', 'single_file']],
  'picture.m3u8': [...picture, ...coded, ...hls],
  'sound.m3u8': [...tone, ...coded, ...hls],
  'sound.aac': [...tone, '-c:a', 'aac', '-ac', '1', '-f', 'adts'],
  'timeline.mpd': [...picture, ...tone, ...coded, ...dash],
  'template.mpd': [...picture, ...tone, ...coded, ...dash, '-use_timeline', '0'],
  'list.mpd': [...picture, ...tone, ...coded, ...dash, '-single_file', '1'],
  'picture.webm': [...picture, ...webm],
  'sound.webm': [...tone, ...webm],
} satisfies Record<string, string[]>

export type StreamName = keyof typeof recipes

const recipeHash = createHash('sha256').update(JSON.stringify(recipes)).digest('hex').slice(0, 12)
const cache = fileURLToPath(new URL(`../../../node_modules/.cache/media-test-streams-${recipeHash}`, import.meta.url))

/** The directory of a stream, made the first time any test asks for it. */
export async function stream(name: StreamName): Promise<string> {
  const directory = join(cache, name)
  const isThere = await access(directory).then(
    () => true,
    () => false,
  )
  if (isThere) return directory
  const unfinished = join(cache, randomUUID())
  await mkdir(unfinished, { recursive: true })
  await run(embeddedTools.ffmpeg.path, ['-y', '-v', 'error', ...recipes[name], name], { cwd: unfinished })
  // A slower process discards its own copy.
  await rename(unfinished, directory).catch(() => rm(unfinished, { recursive: true }))
  return directory
}

export interface StreamSite {
  url: string
  /** Paths in order of their requests. */
  hits: string[]
  /** Answers of its own, by path; all else comes from the directories. */
  answers: Record<string, RequestListener>
  close(): void
}

/** A server of `/<stream>/<file>` on 127.0.0.1, which knows ranges. */
export async function serveStreams(): Promise<StreamSite> {
  const hits: string[] = []
  const answers: Record<string, RequestListener> = {}
  const server = createFarServer(async (request, response) => {
    const path = request.url ?? ''
    hits.push(path)
    const own = answers[path]
    if (own) return own(request, response)
    const [, name, file] = path.split('/')
    const bytes = Object.hasOwn(recipes, name ?? '')
      ? await readFile(join(await stream(name as StreamName), basename(file ?? ''))).catch(() => undefined)
      : undefined
    if (bytes) sendRange(request, response, bytes)
    else response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hits,
    answers,
    close: () => {
      server.closeAllConnections()
      server.close()
    },
  }
}

function sendRange({ headers }: IncomingMessage, response: ServerResponse, bytes: Buffer): void {
  const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? '') ?? []
  if (from === undefined) {
    response.end(bytes)
    return
  }
  const part = bytes.subarray(Number(from), Number(to) + 1)
  response.writeHead(206, { 'content-range': `bytes ${from}-${Number(from) + part.length - 1}/${bytes.length}` })
  response.end(part)
}
