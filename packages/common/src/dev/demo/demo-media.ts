import { execFile } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { REPOSITORY } from '../dev-settings.ts'
import { type Answer, call, callWithJson, expectStatus, expectString, unexpected } from './demo-call.ts'

const run = promisify(execFile)

type MediaWalk = { mediaUrl: string; token: string; report: (step: string, detail: string) => void }

/** Media types and first bytes of a clip's files. */
const FILE_KINDS = [
  { kind: 'gif', type: 'image/gif', begins: (bytes: Buffer) => bytes.toString('latin1', 0, 4) === 'GIF8' },
  { kind: 'jpg', type: 'image/jpeg', begins: (bytes: Buffer) => bytes.readUInt16BE(0) === 0xffd8 },
  { kind: 'mp4', type: 'video/mp4', begins: (bytes: Buffer) => bytes.toString('latin1', 4, 8) === 'ftyp' },
  { kind: 'webm', type: 'video/webm', begins: (bytes: Buffer) => bytes.readUInt32BE(0) === 0x1a45dfa3 },
]

/** Time limit of a file: no machine takes this long for a clip of three seconds. */
const FILE_PATIENCE_MS = 120_000

/** Walks through a token's requests: upload a clip, import one by URL, read the results. */
export async function walkThroughMedia({ mediaUrl, token, report }: MediaWalk): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'demo-'))
  try {
    const clips = await makeDemoClips(folder)
    const upload = await uploadClip(mediaUrl, token, clips.mp4)
    report('POST /media/upload', `201, ${describeMeta(upload)}`)
    await checkResult(upload, report)

    const imported = await importClip(mediaUrl, token, await readFile(clips.gif))
    report('POST /media/import', `201, ${describeMeta(imported)}`)
    await checkResult(imported, report)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

async function makeDemoClips(folder: string): Promise<{ mp4: string; gif: string }> {
  const mp4 = join(folder, 'demo.mp4')
  const gif = join(folder, 'demo.gif')
  await makeClip(mp4)
  await run(await findFfmpeg(), ['-v', 'error', '-y', ...picture(2, '320x180', 10), ...newColours(), gif])
  return { mp4, gif }
}

/** Makes an MP4 of 3 s with sound. */
export async function makeClip(file: string): Promise<void> {
  await run(await findFfmpeg(), [
    ...['-v', 'error', '-y'],
    ...picture(3, '480x270', 25),
    ...['-f', 'lavfi', '-i', 'sine=frequency=440:duration=3'],
    ...newColours(),
    ...['-c:v', 'libx264', '-pix_fmt', 'yuv420p', '-c:a', 'aac', '-shortest', '-f', 'mp4', file],
  ])
}

const picture = (seconds: number, size: string, rate: number) =>
  ['-f', 'lavfi', '-i', `testsrc=duration=${seconds}:size=${size}:rate=${rate}`] as const

/** New ones each time defeat deduplication. */
const newColours = () => ['-vf', `hue=h=${randomInt(360)}`]

/** Finds ffmpeg in PATH, else in the packages of services/media. */
async function findFfmpeg(): Promise<string> {
  try {
    await run('ffmpeg', ['-version'])
    return 'ffmpeg'
  } catch {
    const fromMedia = createRequire(join(REPOSITORY, 'services/media/package.json'))
    return (fromMedia('@ffmpeg-installer/ffmpeg') as { path: string }).path
  }
}

async function uploadClip(mediaUrl: string, token: string, path: string): Promise<Answer> {
  const form = new FormData()
  form.set('title', 'A test pattern')
  form.set('tags', 'demo, test pattern')
  form.set('file', new Blob([await readFile(path)], { type: 'video/mp4' }), 'demo.mp4')
  const answer = await call('POST', `${mediaUrl}/media/upload`, { body: form, headers: { token } })
  expectStatus(answer, 201)
  return answer
}

async function importClip(mediaUrl: string, token: string, gif: Buffer): Promise<Answer> {
  const site = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'image/gif', 'content-length': gif.length }).end(gif)
  }).listen(0, '127.0.0.1')
  await once(site, 'listening')
  const source = `http://127.0.0.1:${(site.address() as AddressInfo).port}/demo.gif`
  try {
    const body = { source, title: 'An imported GIF', tags: ['demo'] }
    const answer = await callWithJson('POST', `${mediaUrl}/media/import`, body, { token })
    if (answer.status === 403) {
      const hint = `${answer.text}\n    (is MEDIA_IMPORT_ALLOW_CIDRS=127.0.0.0/8 set for the media service?)`
      throw unexpected(answer, 'status 201', hint)
    }
    expectStatus(answer, 201)
    return answer
  } finally {
    site.closeAllConnections()
    site.close()
  }
}

async function checkResult(result: Answer, report: MediaWalk['report']): Promise<void> {
  for (const { kind, type, begins } of FILE_KINDS) {
    const url = expectString(result, 'success', 'files', kind)
    const bytes = await fetchWhenReady(url, type)
    if (bytes.length < 16 || !begins(bytes)) {
      throw unexpected({ request: `GET ${url}` }, `a ${kind}`, `${bytes.length} bytes: ${bytes.toString('hex', 0, 16)}`)
    }
    report(`  ${kind}`, `${formatSize(bytes.length).padStart(9)}  ${url}`)
  }

  const page = expectString(result, 'success', 'page')
  const pageAnswer = await call('GET', page)
  expectStatus(pageAnswer, 200)
  const mp4 = expectString(result, 'success', 'files', 'mp4')
  if (!pageAnswer.text.includes(mp4)) throw unexpected(pageAnswer, `a page that holds ${mp4}`, pageAnswer.text)
  report('  page', page)

  const oembed = await call('GET', expectString(result, 'success', 'oembed'))
  expectStatus(oembed, 200)
  if (!expectString(oembed, 'html').includes('<iframe')) throw unexpected(oembed, 'html with an iframe', oembed.text)
  report('  oEmbed', `${expectString(oembed, 'type')}, version ${expectString(oembed, 'version')}`)
}

/** Fetches a file; 202 means that it is still being made. */
async function fetchWhenReady(url: string, type: string): Promise<Buffer> {
  const deadline = Date.now() + FILE_PATIENCE_MS
  while (true) {
    const response = await fetch(url)
    const bytes = Buffer.from(await response.arrayBuffer())
    if (response.status === 200 && response.headers.get('content-type')?.startsWith(type)) return bytes
    if (response.status !== 202 || Date.now() > deadline) {
      const got = `${response.status} ${response.headers.get('content-type')} ${bytes.toString('utf8', 0, 300)}`
      throw unexpected({ request: `GET ${url}` }, `200 ${type}`, got)
    }
    await sleep(1_000 * Number(response.headers.get('retry-after') ?? 1))
  }
}

function describeMeta(result: Answer): string {
  const meta = (name: string) => expectString(result, 'success', 'meta', name)
  return `${meta('width')}×${meta('height')}, ${meta('duration')}, ${meta('frames')} frames`
}

const formatSize = (bytes: number) => `${(bytes / 1024).toFixed(1)} KiB`
