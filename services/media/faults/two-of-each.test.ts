import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { clip, embeddedTools } from '../test/clips.ts'
import { gif } from '../test/gif-bytes.ts'
import { inspect } from '../test/inspect.ts'
import { type Answer, createDatabase, formOf, idIn, listFiles, send, settingsOf } from '../test/service.ts'
import { eventually, type ServiceProcess, startServe, startWorkerProcess } from '../test/service-process.ts'
import { startFlags } from '../test/start-flags.ts'
import { startS3Server } from '../test/upstreams/s3-server.ts'

const TOKEN = 'the-token-of-the-two-services'
const REQUESTS = 40
const CONTENTS = 12

let directory: string
let environment: Record<string, string>
let database: Awaited<ReturnType<typeof createDatabase>>
let s3: Awaited<ReturnType<typeof startS3Server>>
let db: pg.Client
const started: Pick<ServiceProcess, 'child'>[] = []

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'media-two-test-'))
  ;[s3, database] = await Promise.all([startS3Server(), createDatabase()])
  db = new pg.Client({ connectionString: database.url })
  await db.connect()
  const { MEDIA_BLOBS_DIR: _, ...settings } = settingsOf(database.url, directory)
  environment = {
    ...settings,
    ...s3.environment,
    MEDIA_BOOTSTRAP_TOKEN: TOKEN,
    MEDIA_PARALLEL_PER_TOKEN: String(REQUESTS),
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_WORKER_CONCURRENCY: '1',
    MEDIA_FFMPEG_PATH: embeddedTools.ffmpeg.path,
    MEDIA_FFPROBE_PATH: embeddedTools.ffprobe.path,
  }
})
afterAll(async () => {
  for (const { child } of started) child.kill('SIGKILL')
  await db.end()
  await Promise.all([s3.close(), database.drop()])
  await rm(directory, { recursive: true, force: true })
})

/** A machine: only its own processes share its disk. */
const on = (machine: string) => ({ ...environment, MEDIA_WORK_DIR: join(directory, machine) })

async function serveOn(machine: string): Promise<ServiceProcess> {
  const service = await startServe(on(machine))
  started.push(service)
  return service
}

function workOn(machine: string): ServiceProcess {
  const worker = startWorkerProcess(on(machine))
  started.push(worker)
  return worker
}

/** Contents of three kinds. */
async function makeContents(): Promise<Buffer[]> {
  const [silent, sounding] = await Promise.all([
    readFile(await clip('small.mp4')),
    readFile(await clip('small-sound.mp4')),
  ])
  // A box without meaning makes it another file with the same result.
  const unlike = (mp4: Buffer, number: number) =>
    Buffer.concat([mp4, Buffer.from([0, 0, 0, 9]), Buffer.from('free'), Buffer.from([number])])
  const kinds = [
    (number: number) => unlike(silent, number),
    (number: number) => unlike(sounding, number),
    (number: number) => Buffer.from(gif(50 + number, 40, [{ delay: 10 }, { delay: 10, color: 1 }])),
  ]
  return Array.from({ length: CONTENTS }, (_, number) => (kinds[number % kinds.length] as (typeof kinds)[0])(number))
}

/** Serves the content whose number is in the path. */
async function startSite(contents: Buffer[]) {
  const site = createServer(({ url = '' }, response) => response.end(contents[Number(url.slice(1))]))
  await new Promise<void>((done) => site.listen(0, '127.0.0.1', done))
  return { url: `http://127.0.0.1:${(site.address() as AddressInfo).port}`, close: () => site.close() }
}

const filesOf = async (machine: string) => listFiles(join(directory, machine))

test('two APIs, two workers, one database and one bucket: forty clips at once, and a worker killed during them', async () => {
  const contents = await makeContents()
  const site = await startSite(contents)
  const [first, second] = await Promise.all([serveOn('one'), serveOn('two')])
  const doomed = workOn('three')
  workOn('three')

  const answers = Promise.all(
    Array.from({ length: REQUESTS }, async (_, number): Promise<Answer> => {
      const { url } = number % 2 === 0 ? first : second
      const content = number % CONTENTS
      const title = `clip ${number}`
      if (number % 3 === 0) {
        const body = JSON.stringify({ source: `${site.url}/${content}`, title })
        const headers = { token: TOKEN, 'content-type': 'application/json' }
        return send('POST', `${url}/media/import`, { body, headers })
      }
      const body = await formOf(contents[content] as Buffer, [['title', title]])
      return send('POST', `${url}/media/upload`, { body, headers: { token: TOKEN } })
    }),
  )

  // During a clip of its own, with others finished and others waiting.
  const inHand = async () => (await filesOf('three').catch(() => [])).filter((path) => path.includes(`_${doomed.pid}_`))
  const readySources = async () => (await db.query(`select from sources where state = 'ready'`)).rowCount ?? 0
  const isHalfWay = async () => (await readySources()) >= 2 && (await inHand()).length > 0
  await eventually(isHalfWay, true, 30_000)
  doomed.child.kill('SIGKILL')
  await doomed.ended
  expect(await inHand()).not.toEqual([])
  expect(await readySources()).toBeLessThan(CONTENTS)
  // A supervisor would restart it as well.
  workOn('three')

  const results = await answers
  expect(results.map(({ status, headers }) => [status, headers.get('x-media-state')])).toEqual(
    Array.from({ length: REQUESTS }, () => [201, 'ready']),
  )
  expect(new Set(results.map(idIn)).size).toBe(REQUESTS)
  const { rows } = await db.query('select count(*)::int as sources, min(clip_count) as clips from sources')
  expect(rows).toEqual([{ sources: CONTENTS, clips: Math.floor(REQUESTS / CONTENTS) }])

  // The other API serves the clip: neither has anything on its disk.
  const stored = new Map<string, Buffer>()
  for (const [number, result] of results.entries()) {
    const { url } = number % 2 === 0 ? second : first
    await Promise.all(
      ['gif', 'jpg', 'mp4', 'webm'].map(async (kind) => {
        const { status, bytes, headers } = await send('GET', `${url}/f/${idIn(result)}.${kind}`)
        const sha256 = createHash('sha256').update(bytes).digest('hex')
        expect([status, headers.get('etag')]).toEqual([200, `"${sha256}"`])
        stored.set(`${sha256}.${kind}`, bytes)
      }),
    )
  }
  await mkdir(join(directory, 'probed'))
  for (const [name, bytes] of stored) {
    const path = join(directory, 'probed', name)
    await writeFile(path, bytes)
    const { streams } = await inspect(path)
    const codec = { gif: 'gif', jpg: 'mjpeg', mp4: 'h264', webm: 'vp9' }[name.split('.')[1] ?? '']
    expect(streams[0]).toMatchObject({ codec_name: expect.stringMatching(codec ?? ''), width: expect.any(Number) })
    expect(Number(streams[0]?.nb_read_frames)).toBeGreaterThan(0)
  }

  for (const machine of ['one', 'two', 'three']) await eventually(() => filesOf(machine), [])
  expect((await readdir(join(directory, 'three'))).join()).not.toContain(`_${doomed.pid}_`)
  expect(await s3.unfinished()).toEqual([])
  // Housekeeping deletes originals later.
  const files = stored.size + CONTENTS
  expect(await blobsCheck(['--deep', '--json'])).toMatchObject({ code: 0, report: { files, found: {} } })

  const lost = s3.requests.find((request) => request.startsWith('PUT') && request.includes('.gif')) as string
  await s3.remove(new URL(lost.split(' ')[1] as string, s3.endpoint).pathname)
  expect(await blobsCheck(['--json'])).toMatchObject({ code: 3, report: { found: { row_without_blob: 1 }, fixed: {} } })
  // A foreign folder holds none of our files, and that must not make the check drop all clips.
  const elsewhere = await blobsCheck(['--fix'], { MEDIA_S3_PREFIX: 'elsewhere' })
  expect(elsewhere).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing was changed') })
  expect(await readySources()).toBe(CONTENTS)
  expect(await blobsCheck(['--fix'])).toMatchObject({ code: 0, stdout: expect.stringContaining('(1 fixed)') })
  expect(await readySources()).toBeLessThan(CONTENTS)
  site.close()
}, 90_000)

/** Runs the command and returns its exit code. */
async function blobsCheck(args: string[], settings: Record<string, string> = {}) {
  const command = [...startFlags, 'src/cli.ts', 'blobs', 'check', ...args]
  const options = { cwd: join(import.meta.dirname, '..'), env: { ...on('one'), ...settings } }
  const { promise, resolve } = Promise.withResolvers<{ code: unknown; stdout: string; stderr: string }>()
  execFile(process.execPath, command, options, (error, stdout, stderr) =>
    resolve({ code: error?.code ?? 0, stdout, stderr }),
  )
  const ended = await promise
  return { ...ended, report: args.includes('--json') ? JSON.parse(ended.stdout) : undefined }
}
