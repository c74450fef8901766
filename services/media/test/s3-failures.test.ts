import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLogger } from '@services/common/telemetry/logger'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { readConfig } from '../src/config.ts'
import { openBlobs } from '../src/deps.ts'
import { checkBlobs } from '../src/flows/check/check-blobs.ts'
import { TRANSCODE_QUEUE } from '../src/make/jobs/queues.ts'
import { transcodeSource } from '../src/make/jobs/transcode-source.ts'
import type { BlobStorage } from '../src/store/blobs/blob-storage.ts'
import { TIME_LIMITS } from '../src/time-limits.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { idIn, settingsOf, startTestService, type TestService } from './service.ts'
import { type Fault, S3_KEY, type S3Server, startS3Server } from './upstreams/s3-server.ts'

const later = { prefer: 'respond-async' }
const timeLimits = { storageStartMs: 0 }
/** Short limits for requests that are never answered, and for nothing else. */
const shortLimits = { ...TIME_LIMITS, storageAnswerMs: 1_000 }

let directory: string
let logFile: string
let s3: S3Server
let service: TestService
/** The same bucket with the shortest limits. */
let impatient: BlobStorage
/** A limit for stalled bytes; everything before them arrives within it. */
let lessPatient: BlobStorage
/** A clip whose files are in the bucket. */
let id: string

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'media-s3-test-'))
  logFile = join(directory, 'log')
  s3 = await startS3Server()
  const logged = { MEDIA_LOG_FILE: logFile, MEDIA_LOG_LEVEL: 'debug' }
  service = await startTestService({ ...s3.environment, ...logged, MEDIA_WORKERS_ENABLED: 'false' }, { timeLimits })
  id = idIn(await service.ready(await clip('sound.mp4')))
  const { config, log } = service.deps
  impatient = await openBlobs(config.storage, log, shortLimits)
  lessPatient = await openBlobs(config.storage, log, { ...TIME_LIMITS, storageAnswerMs: 4_000 })
})
afterAll(async () => {
  await impatient.close()
  await lessPatient.close()
  await service.close()
  await s3.close()
  await rm(directory, { recursive: true })
})

const isFile = /\/clips\/[0-9a-f]{2}\//
/** Only what is done with files: the service has started long ago. */
const failing = (fault: Fault) => (request: { url?: string | undefined }) =>
  isFile.test(request.url ?? '') ? fault : undefined

/** Runs `work` while the bucket is like that, with an impatient service where it would wait. */
async function whileFailing<T>(fault: Fault | 'vanish', work: () => Promise<T>): Promise<T> {
  const { blobs } = service.deps
  if (fault === 'vanish') await s3.vanish()
  else s3.fault = failing(fault)
  if (fault === 'hang') service.deps.blobs = impatient
  if (fault === 'stand still') service.deps.blobs = lessPatient
  try {
    return await work()
  } finally {
    service.deps.blobs = blobs
    s3.fault = () => undefined
    if (fault === 'vanish') await s3.comeBack()
  }
}

let number = 0
const newClip = () => gif(60 + ++number, 20, [{ delay: 10 }])

test('files in a bucket behave like files on a disk', async () => {
  const whole = await service.get(`/f/${id}.mp4`)
  expect([whole.status, whole.headers.get('content-type')]).toEqual([200, 'video/mp4'])
  const head = await service.call('HEAD', `/f/${id}.mp4`)
  expect([head.status, head.headers.get('content-length')]).toEqual([200, String(whole.bytes.length)])
  const part = await service.get(`/f/${id}.mp4`, { range: 'bytes=10-19' })
  expect([part.status, part.bytes.equals(whole.bytes.subarray(10, 20))]).toEqual([206, true])
  const etag = whole.headers.get('etag') as string
  expect((await service.get(`/f/${id}.mp4`, { 'if-none-match': etag })).status).toBe(304)
  expect((await service.get(`/f/${id}.mp4`, { range: 'bytes=99999999-' })).status).toBe(416)
  // Nothing but files that are on their way is on our own disk, and those are gone.
  expect((await service.traces()).files).toEqual([])
})

describe('a bucket that fails costs 503 and no restart:', () => {
  test.each<[string, Fault | 'vanish']>([
    ['it hangs', 'hang'],
    ['it is not there', 'vanish'],
    ['it has an error', { status: 500, code: 'InternalError' }],
    ['it wants less', { status: 503, code: 'SlowDown' }],
    ['it refuses us', { status: 403, code: 'AccessDenied' }],
    ['the bucket is deleted', { status: 404, code: 'NoSuchBucket' }],
  ])('%s', async (_, fault) => {
    const answers = await whileFailing(fault, () =>
      Promise.all([
        service.get(`/f/${id}.mp4`),
        service.get(`/f/${id}.mp4`, { range: 'bytes=0-9' }),
        service.upload(newClip(), [], later),
      ]),
    )
    for (const { status, body, headers } of answers) {
      expect([status, body.error.code, headers.get('retry-after')]).toEqual([503, 'unavailable', '5'])
      expect([headers.get('cache-control'), headers.get('etag')]).toEqual(['no-store', null])
    }
    expect((await service.get(`/f/${id}.mp4`)).status).toBe(200)
    expect((await service.upload(newClip(), [], later)).status).toBe(201)
  })
})

/** All of a raw answer until the connection ends, which it must. */
async function readRaw(path: string): Promise<string> {
  const { port } = new URL(service.url)
  const socket = connect(Number(port), '127.0.0.1')
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`)
  let answer = ''
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  socket.on('error', () => {})
  await once(socket, 'close')
  return answer
}

test.each<Fault>(['break', 'stand still'])(
  'a file that ends midway (%s) ends the connection: it is never short',
  async (fault) => {
    const answer = await whileFailing(fault, () => readRaw(`/f/${id}.mp4`))
    const [head = '', body = ''] = answer.split('\r\n\r\n')
    const announced = Number(/content-length: (\d+)/i.exec(head)?.[1])
    expect(head).toMatch(/^HTTP\/1.1 200/)
    expect(body.length).toBeGreaterThan(0)
    expect(body.length).toBeLessThan(announced)
  },
)

test('a file that is shorter in the bucket than it was is 500, and no cache keeps it', async () => {
  const other = idIn(await service.readyAlike(newClip()))
  const { rows } = await service.deps.pool.query(
    `select encode(r.sha256, 'hex') as sha256 from renditions r join clips using (source_id) where id = $1 and kind = 'gif'`,
    [other],
  )
  const path = join(directory, 'short')
  await writeFile(path, 'GIF')
  await service.deps.blobs.put({ sha256: rows[0].sha256, extension: 'gif' }, path)
  const { status, headers } = await service.get(`/f/${other}.gif`)
  expect([status, headers.get('cache-control')]).toEqual([500, 'no-store'])
})

test('an upload in parts that fails leaves no part', async () => {
  const path = join(directory, 'parts')
  await writeFile(path, Buffer.alloc(9_000_000, 'clip'))
  const before = await s3.unfinished()
  s3.fault = ({ url = '' }) => (url.includes('partNumber=2') ? { status: 500, code: 'InternalError' } : undefined)
  const put = service.deps.blobs.put({ sha256: 'f'.repeat(64), extension: 'mp4' }, path)
  await expect(put).rejects.toThrow('S3 Upload')
  s3.fault = () => undefined
  expect(s3.requests.some((request) => /^POST .*uploads/.test(request))).toBe(true)
  expect((await s3.unfinished()).filter((each) => !before.includes(each))).toEqual([])
})

test('an upload in parts whose abort fails, too, says why it failed first', async () => {
  const path = join(directory, 'parts')
  await writeFile(path, Buffer.alloc(9_000_000, 'clip'))
  s3.fault = ({ method, url = '' }) => {
    if (url.includes('partNumber=2')) return { status: 507, code: 'InsufficientStorage' }
    return method === 'DELETE' ? { status: 403, code: 'AccessDenied' } : undefined
  }
  const put = service.deps.blobs.put({ sha256: 'e'.repeat(64), extension: 'mp4' }, path)
  await expect(put).rejects.toThrow(/^S3 Upload: InsufficientStorage.*; then .*AbortMultipartUpload.*AccessDenied/)
  s3.fault = () => undefined
})

test('an accepted clip waits for an unavailable bucket without losing an attempt', async () => {
  const api = await startTestService({ ...s3.environment, MEDIA_WORKERS_ENABLED: 'false' }, { timeLimits })
  const { pool } = api.deps
  await api.upload(newClip(), [], later)
  const { rows } = await pool.query('select id from sources')
  const { retryLimit: retryCount } = TRANSCODE_QUEUE
  const job = { id: randomUUID(), data: { sourceId: rows[0].id }, retryCount, signal: new AbortController().signal }
  // Once before the original was read, once when the files are to be stored.
  for (const method of ['GET', 'PUT']) {
    await pool.query('delete from media_queue.job')
    s3.fault = (request) =>
      request.method === method ? failing({ status: 503, code: 'SlowDown' })(request) : undefined
    await transcodeSource(api.deps, job)
    const { rows: jobs } = await pool.query('select retry_count from media_queue.job')
    expect(jobs).toEqual([{ retry_count: 0 }])
  }
  s3.fault = () => undefined
  await pool.query('update media_queue.job set start_after = now()')
  await api.startWorker()
  const state = async () => (await pool.query('select state from sources')).rows[0].state
  await expect.poll(state).toBe('ready')
  expect((await api.traces()).files).toEqual([])
  await api.close()
})

describe('a start reports the problem with the bucket:', () => {
  const log = createLogger({ name: 'test', level: 'fatal' })
  const open = (settings: Record<string, string>, storageAnswerMs = 60_000) => {
    const environment = { ...settingsOf('postgres://localhost/media', directory), ...s3.environment, ...settings }
    return openBlobs(readConfig(environment).config.storage, log, { ...TIME_LIMITS, ...timeLimits, storageAnswerMs })
  }

  test.each<[string, Record<string, string>, RegExp]>([
    ['there is none', { MEDIA_S3_BUCKET: 'elsewhere' }, /MEDIA_S3_BUCKET does not exist there \(NoSuchBucket 404/],
    ['no such key', { MEDIA_S3_ACCESS_KEY_ID: 'unknown' }, /MEDIA_S3_ACCESS_KEY_ID .* \(InvalidAccessKeyId 403/],
    ['nobody there', { MEDIA_S3_ENDPOINT: 'http://127.0.0.1:9' }, /MEDIA_S3_ENDPOINT does not answer .*ECONNREFUSED/],
  ])('%s', async (_, settings, expected) => {
    await expect(open(settings)).rejects.toThrow(expected)
  })

  test.each<[string, Fault, RegExp]>([
    [
      'wrong secret',
      { status: 403, code: 'SignatureDoesNotMatch' },
      /MEDIA_S3_SECRET_ACCESS_KEY.*SignatureDoesNotMatch/,
    ],
    ['no name for one', { status: 400, code: 'InvalidBucketName' }, /MEDIA_S3_BUCKET is not .*InvalidBucketName/],
    ['wrong region', { status: 301, code: 'PermanentRedirect' }, /MEDIA_S3_REGION or MEDIA_S3_ENDPOINT is not/],
    ['it hangs', 'hang', /MEDIA_S3_ENDPOINT does not answer/],
  ])('%s', async (_, fault, expected) => {
    s3.fault = () => fault
    await expect(open({}, fault === 'hang' ? shortLimits.storageAnswerMs : undefined)).rejects.toThrow(expected)
    s3.fault = () => undefined
  })

  test('it waits for one that comes later', async () => {
    await s3.vanish()
    const { promise: isAway, resolve: warn } = Promise.withResolvers<void>()
    const listening = Object.assign(createLogger({ name: 'test', level: 'fatal' }), { warn: () => warn() })
    const opening = openBlobs(service.deps.config.storage, listening, { ...TIME_LIMITS, storageStartMs: 60_000 })
    await isAway
    await s3.comeBack()
    await (await opening).close()
  })
})

describe('a bucket whose server lists no uploads in parts', () => {
  const listingIs = (fault: Fault) => {
    s3.fault = ({ method, url = '' }) => (method === 'GET' && /[?&]uploads/.test(url) ? fault : undefined)
  }
  const check = () => checkBlobs(service.deps, { deep: false, fix: false, report: () => {} })

  test.each<[string, Fault]>([
    ['knows no such list', { status: 501, code: 'NotImplemented' }],
    ['does not allow it', { status: 405, code: 'MethodNotAllowed' }],
    ['has none yet', { status: 404, code: 'NoSuchUpload' }],
  ])('and %s is checked and tidied up all the same', async (_, fault) => {
    listingIs(fault)
    expect((await check()).files).toBeGreaterThan(0)
    await service.deps.blobs.sweep()
    s3.fault = () => undefined
  })

  test.each<Fault>([
    { status: 404, code: 'NoSuchBucket' },
    { status: 403, code: 'AccessDenied' },
  ])('and refuses for another reason is reported: %o', async (fault) => {
    listingIs(fault)
    await expect(check()).rejects.toThrow('ListMultipartUploads')
    await expect(service.deps.blobs.sweep()).rejects.toThrow('ListMultipartUploads')
    s3.fault = () => undefined
  })
})

test('no log contains the key, whatever failed', async () => {
  for (const fault of [{ status: 403, code: 'AccessDenied' }, 'vanish'] as const) {
    expect((await whileFailing(fault, () => service.get(`/f/${id}.mp4`))).status).toBe(503)
  }
  const written = () => readFile(logFile, 'utf8')
  for (const words of ['StorageUnavailable', 'AccessDenied']) await expect.poll(written).toContain(words)
  const text = await written()
  for (const secret of Object.values(S3_KEY)) expect(text).not.toContain(secret)
  expect(text).not.toMatch(/AWS4-HMAC|x-amz-|Signature=/i)
})

test('a bucket that answers one upload late delays no other upload', async () => {
  const api = await startTestService({ ...s3.environment, MEDIA_WORKERS_ENABLED: 'false' }, { timeLimits })
  const [first, second] = [newClip(), newClip()]
  const { token } = await api.newToken()
  const key = `${createHash('sha256').update(first).digest('hex')}.source`
  const isSent = () => s3.requests.some((line) => line.startsWith('PUT') && line.includes(key))
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>()
  s3.fault = ({ method, url = '' }) => (method === 'PUT' && url.includes(key) ? answered : undefined)
  const late = api.upload(first, [], later)
  await expect.poll(isSent, { interval: 10 }).toBe(true)
  const other = api.upload(second, [], { ...later, token })
  expect(await Promise.race([late.then(() => 'late'), other.then(({ status }) => status)])).toBe(201)
  s3.fault = () => undefined
  answer()
  expect((await late).status).toBe(201)
  await api.close()
})
