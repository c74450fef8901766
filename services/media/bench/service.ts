import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { delimiter, join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { startFlags } from '../test/start-flags.ts'

export type BenchService = Awaited<ReturnType<typeof startService>>

export const TOKEN = 'the-token-of-the-benchmark'
const FORM_HEADERS = { token: TOKEN, 'content-type': 'multipart/form-data; boundary=b' }

interface StartOptions {
  /** Variables beside those below. */
  settings?: Record<string, string>
  /** Search path for programs. */
  path?: string | undefined
  /** Folder of a bundle, to run that instead of the sources. */
  bundle?: string
}

const SOURCES = fileURLToPath(new URL('..', import.meta.url))

/** Starts `serve` with the switches of `pnpm start`. */
export async function startService(databaseUrl: string, directory: string, options: StartOptions = {}) {
  const startedAt = performance.now()
  const child = start(
    options.bundle ? ['--enable-source-maps', 'dist/main.js'] : ['src/main.ts'],
    databaseUrl,
    directory,
    options,
  )
  const base = await said(child, /listening at (http:[^"]+)"/i)
  const readyMs = performance.now() - startedAt
  return {
    base,
    readyMs,
    pid: child.pid as number,
    /** Resident bytes: now, and at the peak since `resetPeak`. */
    memory: async () => {
      const status = await readFile(`/proc/${child.pid}/status`, 'utf8')
      const bytes = (name: string) => Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(status)?.[1]) * 1024
      return { now: bytes('VmRSS'), peak: bytes('VmHWM') }
    },
    resetPeak: () => writeFile(`/proc/${child.pid}/clear_refs`, '5'),
    stop: async () => {
      child.kill('SIGTERM')
      await once(child, 'exit')
    },
  }
}

/** Starts this many `worker` processes with one slot each. */
export async function startWorkers(databaseUrl: string, directory: string, count: number) {
  const settings = { MEDIA_WORKER_CONCURRENCY: '1' }
  const workers = Array.from({ length: count }, () =>
    start(['src/cli.ts', 'worker'], databaseUrl, directory, { settings }),
  )
  await Promise.all(workers.map((worker) => said(worker, /worker (started)/)))
  return {
    stop: async () => {
      for (const worker of workers) worker.kill('SIGTERM')
      await Promise.all(workers.map((worker) => once(worker, 'exit')))
    },
  }
}

function start(command: string[], databaseUrl: string, directory: string, { settings, path, bundle }: StartOptions) {
  const child = spawn(process.execPath, [...startFlags, ...command], {
    cwd: bundle ?? SOURCES,
    stdio: ['ignore', 'pipe', 'inherit'],
    env: {
      PATH: path ?? process.env.PATH,
      NODE_COMPILE_CACHE: fileURLToPath(new URL('../../../node_modules/.cache/node', import.meta.url)),
      MALLOC_ARENA_MAX: '1',
      MEDIA_BASE_URL: 'http://localhost',
      MEDIA_HOST: '127.0.0.1',
      MEDIA_PORT: '0',
      MEDIA_DATABASE_URL: databaseUrl,
      MEDIA_BLOBS_DIR: join(directory, 'blobs'),
      MEDIA_WORK_DIR: join(directory, 'blobs', 'work'),
      MEDIA_BOOTSTRAP_TOKEN: TOKEN,
      MEDIA_PARALLEL_PER_TOKEN: '64',
      MEDIA_SYNC_WAIT: '10m',
      MEDIA_RATE_LIMIT_UPLOAD: '100000',
      MEDIA_QUEUE_LIMIT: '1000',
      ...settings,
    },
  })
  // A run that fails leaves nothing behind.
  const kill = () => child.kill('SIGKILL')
  process.once('exit', kill)
  child.once('exit', () => process.off('exit', kill))
  return child
}

/** Waits for a match of the expression in the log and returns its group. */
function said(child: ReturnType<typeof start>, what: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let output = ''
    child.stdout.on('data', (chunk) => {
      output = (output + chunk).slice(-10_000)
      const found = what.exec(output)?.[1]
      if (found) resolve(found)
    })
    child.once('exit', () => reject(new Error(`the service ended: ${output}`)))
  })
}

/** Resolves to the addresses of the finished files. */
export async function upload(service: BenchService, path: string): Promise<Files> {
  const { headers, files } = await send(service, path, {})
  if (headers['x-media-state'] !== 'ready') throw new Error('the clip is not ready')
  return files
}

/** Resolves when the mp4 can be shown. Throws where the source's own streams are not the mp4. */
export async function uploadForMp4(service: BenchService, path: string): Promise<Files> {
  const { headers, files } = await send(service, path, { prefer: 'wait-for=mp4' })
  if (headers['x-media-ready'] !== 'jpg, mp4') throw new Error(`ready: ${headers['x-media-ready']}`)
  return files
}

type Files = Record<'gif' | 'mp4' | 'webm', string>

/**
 * Streams the form itself: `fetch` with a FormData spends a third of the time of a 35 MB upload on the client's side.
 */
async function send({ base }: BenchService, path: string, preference: Record<string, string>) {
  const [head, tail] = ['--b\r\nContent-Disposition: form-data; name="file"; filename="clip"\r\n\r\n', '\r\n--b--\r\n']
  const { size } = await stat(path)
  const client = request(`${base}/media/upload`, {
    method: 'POST',
    headers: { ...FORM_HEADERS, ...preference, 'content-length': head.length + size + tail.length },
  })
  client.write(head)
  for await (const chunk of createReadStream(path, { highWaterMark: 256 * 1024 })) {
    if (!client.write(chunk)) await once(client, 'drain')
  }
  client.end(tail)
  const [response] = (await once(client, 'response')) as [IncomingMessage]
  const body = await text(response)
  if (response.statusCode !== 201) throw new Error(`${response.statusCode} ${body}`)
  return { headers: response.headers, files: JSON.parse(body).success.files as Files }
}

export async function isReady({ base }: BenchService, address: string): Promise<boolean> {
  const answer = await fetch(base + new URL(address).pathname, { method: 'HEAD' })
  if (answer.status !== 200 && answer.status !== 202) throw new Error(`${address}: ${answer.status}`)
  return answer.status === 200
}

export async function download({ base }: BenchService, address: string): Promise<Buffer> {
  const answer = await fetch(base + new URL(address).pathname)
  return Buffer.from(await answer.arrayBuffer())
}

/** A file without a known format: read to its end, then refused. */
export async function uploadNoise({ base }: BenchService, bytes: number): Promise<void> {
  const client = request(`${base}/media/upload`, {
    method: 'POST',
    headers: FORM_HEADERS,
  })
  client.write('--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n')
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  for (let sent = 0; sent < bytes; sent += chunk.length) {
    if (!client.write(chunk.subarray(0, bytes - sent))) await once(client, 'drain')
  }
  client.end('\r\n--b--\r\n')
  const [response] = await once(client, 'response')
  response.resume()
  await once(response, 'end')
  if (response.statusCode !== 415) throw new Error(`unexpected ${response.statusCode}`)
}

/**
 * Folder with the programs that a clip needs, but no sandbox. Bubblewrap does not report the CPU time of its child, and
 * costs next to none.
 */
export async function pathWithoutSandbox(directory: string): Promise<string> {
  const path = join(directory, 'programs')
  await mkdir(path)
  for (const name of ['ffmpeg', 'ffprobe', 'nice', 'prlimit', 'setpriv']) {
    const places = (process.env.PATH ?? '').split(delimiter).map((folder) => join(folder, name))
    const found = places.find((place) => existsSync(place))
    if (found) await symlink(found, join(path, name))
  }
  return path
}
