import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { type AddressInfo, connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { createFarServer } from '@services/common/testing/http/far-server'
import { programOf } from '@services/common/testing/run/program'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { blobKey } from '../src/store/blobs/blob-storage.ts'
import { openUpload } from './clients/slow-upload.ts'
import { clip, tools } from './clips.ts'
import { send, settingsOf, startTestService } from './service.ts'
import {
  eventually,
  readMemory,
  resetPeak,
  type ServiceProcess,
  startServe,
  startWorkerProcess,
} from './service-process.ts'
import { startFlags } from './start-flags.ts'

const run = promisify(execFile)

let directory: string
/** An ffmpeg that comes to no end with a clip, so that a worker can be stopped over it on any machine. */
let endlessFfmpeg: { MEDIA_FFMPEG_PATH: string; MEDIA_FFPROBE_PATH: string }

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'media-process-test-'))
  endlessFfmpeg = { MEDIA_FFMPEG_PATH: join(directory, 'ffmpeg'), MEDIA_FFPROBE_PATH: tools.ffprobe.path }
  const script = `case "$*" in *' -i '*) exec sleep 3600;; esac; exec '${tools.ffmpeg.path}' "$@"`
  await writeFile(endlessFfmpeg.MEDIA_FFMPEG_PATH, `#!/bin/sh\n${script}\n`, { mode: 0o755 })
})
afterAll(async () => {
  for (const end of endings) await end()
  await rm(directory, { recursive: true, force: true })
})

/** Ends of all that the tests start. */
const endings: (() => unknown)[] = []

function killedAtTheEnd<Started extends Pick<ServiceProcess, 'child'>>(started: Started): Started {
  endings.unshift(() => started.child.kill('SIGKILL'))
  return started
}

/** Grace period of `docker stop` before it kills. */
const DOCKER_STOP_MS = 10_000

const MiB = 1024 ** 2
const isTemporary = (path: string) => path.startsWith('work/')

/** The API in the test's process; the test chooses the transcoder. */
async function startApi(settings: Record<string, string> = {}) {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', ...settings })
  endings.push(() => service.close())
  const environment = settingsOf(service.deps.config.database.url, service.blobsDir)
  const isTranscoding = () => hasProcess('sleep', service.blobsDir)
  const state = async () => (await service.deps.pool.query('select state from sources')).rows[0].state
  return { ...service, environment, isTranscoding, state }
}

test('a stopped worker returns its clip to the queue and leaves nothing', async () => {
  const api = await startApi()
  const worker = killedAtTheEnd(startWorkerProcess({ ...api.environment, ...endlessFfmpeg }))
  await api.upload(await clip('plain.mp4'), [], { prefer: 'respond-async' })
  await eventually(api.isTranscoding, true)
  worker.child.kill('SIGTERM')
  expect(await worker.ended).toBe(0)
  expect(await api.state()).toBe('processing')
  const { rows } = await api.deps.pool.query(`select state from media_queue.job where name = 'transcode'`)
  expect(rows).toEqual([{ state: 'retry' }])
  expect((await api.listFiles()).filter(isTemporary)).toEqual([])
  expect(await api.isTranscoding()).toBe(false)
})

test('a stopped service answers waiting requests, refuses unfinished ones, and exits cleanly', async () => {
  const api = await startApi()
  const service = killedAtTheEnd(await startServe({ ...api.environment, MEDIA_WORKERS_ENABLED: 'false' }))
  const body = new FormData()
  body.append('file', new Blob([new Uint8Array(Buffer.from(GIF, 'base64'))]))
  const waiting = send('POST', `${service.url}/media/upload`, { body, headers: { token: api.token } })
  await eventually(async () => (await api.countRows()).clips, 1)
  // Before the one that is waited for, so that its request has been read by then.
  const hesitant = openUpload(service.url, { token: api.token }, '--b\r\nContent-Disposition: ')
  const endless = openUpload(service.url, { token: api.token })
  endless.write(Buffer.alloc(100_000))
  await eventually(async () => (await api.listFiles()).filter(isTemporary).length, 1)

  service.child.kill('SIGTERM')
  const answer = await waiting
  expect([answer.status, answer.headers.get('x-media-state')]).toEqual([201, 'processing'])
  for (const refused of await Promise.all([endless.answer, hesitant.answer])) {
    expect(refused).toMatchObject({ status: 503, body: { error: { code: 'unavailable' } } })
  }
  expect(await service.ended).toBe(0)
  expect((await api.listFiles()).filter(isTemporary)).toEqual([])
})

test('a process without workers removes the leftovers of a killed one', async () => {
  const { environment, blobsDir } = await startApi()
  const left = join(blobsDir, 'work', '000000000000_1_0123abcd4567cdef')
  // Young enough to be left by the sweep at the start.
  await mkdir(left, { recursive: true })
  killedAtTheEnd(await startServe({ ...environment, MEDIA_WORKERS_ENABLED: 'false' }))
  await utimes(left, 1, 1)
  await eventually(() => stat(left).catch(() => 'gone'), 'gone')
})

test('a stalled download ends within the grace period of `docker stop`', async () => {
  const api = await startApi({ MEDIA_WORKERS_ENABLED: 'true' })
  const { body } = await api.upload(Buffer.from(GIF, 'base64'))
  // No connection's buffers hold this much.
  const { rows } = await api.deps.pool.query(
    `select encode(sha256, 'hex') as sha256 from renditions where kind = 'mp4'`,
  )
  await truncate(join(api.blobsDir, blobKey({ sha256: rows[0].sha256, extension: 'mp4' })), 64 * MiB)
  await api.deps.pool.query(`update renditions set bytes = $1 where kind = 'mp4'`, [64 * MiB])
  const service = killedAtTheEnd(await startServe({ ...api.environment, MEDIA_WORKERS_ENABLED: 'false' }))
  const { port } = new URL(service.url)
  const stalled = connect(Number(port), '127.0.0.1')
  stalled.on('error', () => {})
  stalled.write(`GET ${new URL(body.success.files.mp4).pathname} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(stalled, 'readable')
  service.child.kill('SIGTERM')
  const killing = setTimeout(() => service.child.kill('SIGKILL'), DOCKER_STOP_MS)
  expect(await service.ended).toBe(0)
  clearTimeout(killing)
  stalled.destroy()
})

test('memory does not grow with the file; the largest one passes, one byte more does not', async () => {
  const api = await startApi()
  const service = killedAtTheEnd(await startServe({ ...api.environment, MEDIA_WORKERS_ENABLED: 'false' }))
  const uploadOf = async (bytes: number) => {
    const upload = openUpload(service.url, { token: api.token })
    const chunk = Buffer.alloc(MiB, 'x')
    for (let sent = 0; sent < bytes; sent += chunk.length) await upload.write(chunk.subarray(0, bytes - sent))
    upload.end()
    return upload.answer
  }
  await uploadOf(MiB)
  await resetPeak(service.pid)
  const { now } = await readMemory(service.pid)
  const full = await uploadOf(157_286_400)
  const { peak } = await readMemory(service.pid)
  // Refused for its type, after the whole body was read.
  expect([full.status, full.body.error.code]).toEqual([415, 'unsupported_media_type'])
  expect(peak - now).toBeLessThan(64 * MiB)
  const over = await uploadOf(157_286_401)
  expect([over.status, over.body.error]).toEqual([
    413,
    expect.objectContaining({ code: 'file_too_large', param: 'file' }),
  ])

  const resumableOf = async (bytes: number) => {
    const headers = { token: api.token, 'tus-resumable': '1.0.0' }
    const begun = await send('POST', `${service.url}/tus`, { headers: { ...headers, 'upload-length': String(bytes) } })
    const { pathname } = new URL(begun.headers.get('location') as string)
    return send('PATCH', service.url + pathname, {
      headers: { ...headers, 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' },
      body: new Uint8Array(bytes),
    })
  }
  await resumableOf(MiB)
  await resetPeak(service.pid)
  const { now: before } = await readMemory(service.pid)
  const whole = await resumableOf(157_286_400)
  expect([whole.status, whole.body.error.code]).toEqual([415, 'unsupported_media_type'])
  expect((await readMemory(service.pid)).peak - before).toBeLessThan(64 * MiB)
  expect((await api.listFiles()).filter(isTemporary)).toEqual([])
})

test('a disk that refuses to be written is 503 with Retry-After, for uploads and imports', async () => {
  const api = await startApi()
  const blocks = 200
  const settings = { ...api.environment, MEDIA_WORKERS_ENABLED: 'false' }
  const service = killedAtTheEnd(await startServe(settings, { fileBlocks: blocks }))
  const file = Buffer.concat([Buffer.from(GIF, 'base64'), Buffer.alloc(blocks * 1024)])
  const site = createFarServer((_request, response) => response.end(file))
  await new Promise<void>((done) => site.listen(0, '127.0.0.1', done))
  endings.push(() => site.close())
  const body = new FormData()
  body.append('file', new Blob([file]))
  const headers = { token: api.token, prefer: 'respond-async' }
  const upload = await send('POST', `${service.url}/media/upload`, { body, headers })
  const imported = await send('POST', `${service.url}/media/import`, {
    body: JSON.stringify({ source: `http://127.0.0.1:${(site.address() as AddressInfo).port}/` }),
    headers: { ...headers, 'content-type': 'application/json' },
  })
  for (const answer of [upload, imported]) {
    expect([answer.status, answer.body.error.code]).toEqual([503, 'unavailable'])
    expect(answer.headers.get('retry-after')).toBe('60')
  }
  expect(await api.listFiles()).toEqual([])
  expect(await api.countRows()).toEqual({ clips: 0, sources: 0 })
})

// ffmpeg and ffprobe are started by the same code, and yt-dlp by code of its own.
test.for([
  ['MEDIA_FFMPEG_PATH', 'missing'],
  ['MEDIA_FFPROBE_PATH', 'locked'],
  ['MEDIA_YTDLP_PATH', 'missing'],
  ['MEDIA_YTDLP_PATH', 'locked'],
] as const)('a start whose %s is %s names the variable and exits with 78', async ([variable, how]) => {
  const path = join(directory, `${variable}-${how}`)
  if (how === 'locked') {
    // The service makes a file of its own executable: EACCES remains because of the interpreter.
    const interpreter = join(directory, 'interpreter')
    await writeFile(interpreter, '', { mode: 0o644 })
    await writeFile(path, `#!${interpreter}\n`, { mode: 0o644 })
  }
  idle ??= startApi()
  const { code, output } = await runStart({ ...(await idle).environment, [variable]: path })
  expect(output).toMatch(new RegExp(`${variable}: .*${path}.*${how === 'locked' ? 'EACCES' : ''}`))
  expect(code).toBe(78)
})

/** Database of the starts that fail. */
let idle: ReturnType<typeof startApi> | undefined

/** Two pixels. */
const GIF = 'R0lGODlhAgABAIAAAP///wAAACH5BAAKAAAALAAAAAACAAEAAAICDAoAOw=='

/** Whether a program of this name works below the directory. */
async function hasProcess(name: string, directory: string): Promise<boolean> {
  const { stdout } = await run('sh', ['-c', `for p in $(pgrep -x ${name}); do readlink /proc/$p/cwd; done; true`])
  return stdout.includes(directory)
}

/** `serve` in a process of its own that does not get to listen: its exit code and all that it wrote. */
async function runStart(settings: Record<string, string>): Promise<{ code: number; output: string }> {
  const options = { cwd: join(import.meta.dirname, '..'), env: { ...process.env, ...settings, MEDIA_PORT: '0' } }
  const started = run(process.execPath, [...startFlags, programOf('media', 'main')], options)
  return killedAtTheEnd(started).then(
    ({ stdout, stderr }) => ({ code: 0, output: stdout + stderr }),
    ({ code, stdout, stderr }: { code: number; stdout: string; stderr: string }) => ({ code, output: stdout + stderr }),
  )
}
