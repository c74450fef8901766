import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect } from 'vitest'
import type { Deps } from '../src/deps.ts'
import { cleanUp } from '../src/housekeeping.ts'
import { TRANSCODE_QUEUE } from '../src/make/jobs/queues.ts'
import { failDeadSource, transcodeSource } from '../src/make/jobs/transcode-source.ts'
import { openUpload } from './clients/slow-upload.ts'
import { clip } from './clips.ts'
import { gif } from './gif-bytes.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { programThat } from './program.ts'
import { formOf, idIn, startTestService, type TestService, test } from './service.ts'

const temporary = async (service: TestService) => (await service.listFiles()).filter((path) => path.startsWith('work/'))

test('a client that disconnects in the middle of its upload leaves no file and no row', async ({ service }) => {
  const before = await service.countRows()
  const upload = openUpload(service.url, { token: service.token })
  await upload.write(Buffer.alloc(300_000))
  await expect.poll(() => temporary(service)).toHaveLength(1)
  upload.abort()
  await expect.poll(() => temporary(service)).toEqual([])
  expect(await service.countRows()).toEqual(before)
})

/** Takes one upload of a token at a time. */
let narrow: TestService
beforeAll(async () => {
  narrow = await startTestService({ MEDIA_PARALLEL_PER_TOKEN: '1', MEDIA_WORKERS_ENABLED: 'false' })
})
afterAll(() => narrow.close())

const HALF_A_FILE = '--b\r\nContent-Disposition: form-data; name="file"\r\n\r\nGIF89a'
const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`

test.each([
  { how: 'ends after its headers', body: '', end: true },
  { how: 'ends inside a field', body: '--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nab', end: true },
  { how: 'ends inside the header of a part', body: '--b\r\nContent-Dispo', end: true },
  { how: 'begins with a chunk that is none', chunks: 'zz\r\n' },
  { how: 'has one in the middle of the file', chunks: `${chunk(HALF_A_FILE)}zz\r\n` },
  { how: 'has a chunk extension without end', chunks: `5;${'x'.repeat(40_000)}\r\n` },
])('an upload that $how ends at once and frees its slot of the token', async ({ body, chunks, end }) => {
  const socket = connect(Number(new URL(narrow.url).port), '127.0.0.1').on('error', () => {})
  socket.resume()
  const length = chunks === undefined ? 'Content-Length: 99999' : 'Transfer-Encoding: chunked'
  const head = ['POST /media/upload HTTP/1.1', 'Host: x', `Token: ${narrow.token}`, length]
  head.push('Content-Type: multipart/form-data; boundary=b')
  socket.write(`${head.join('\r\n')}\r\n\r\n${chunks ?? body}`)
  if (end) socket.end()
  await once(socket, 'close')
  const next = async () => (await narrow.upload(gif(50, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' })).status
  await expect.poll(next).toBe(201)
  expect(await temporary(narrow)).toEqual([])
})

test('the byte over the limit ends the upload; the rest is neither kept nor waited for', async () => {
  const service = await startTestService({ MEDIA_MAX_FILE_BYTES: '100000', MEDIA_WORKERS_ENABLED: 'false' })
  const upload = openUpload(service.url, { token: service.token })
  let sent = 0
  for (; !upload.isOver() && sent < 1_000; sent++) await upload.write(Buffer.alloc(64_000))
  expect(await upload.answer).toMatchObject({
    status: 413,
    body: { error: { code: 'file_too_large', details: { limit: 100_000 } } },
  })
  expect(sent).toBeLessThan(1_000)
  expect(await temporary(service)).toEqual([])
  upload.abort()

  const announced = await service.call('POST', '/media/upload', {
    body: new Uint8Array(9_000_000),
    headers: { token: service.token, 'content-type': 'multipart/form-data; boundary=b' },
  })
  expect(announced.status).toBe(413)
  await service.close()
})

test('a client that disconnects while it waits still gets its clip', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const abort = new AbortController()
  const body = await formOf(gif(50, 20, [{ delay: 10 }]))
  const gone = fetch(`${service.url}/media/upload`, {
    method: 'POST',
    body,
    headers: { token: service.token },
    signal: abort.signal,
  })
  await expect.poll(async () => (await service.countRows()).clips).toBe(1)
  abort.abort()
  await expect(gone).rejects.toThrow()
  await service.startWorker()
  const state = async () => (await service.deps.pool.query('select state from sources')).rows[0].state
  await expect.poll(state).toBe('ready')
  expect(await service.countRows()).toEqual({ clips: 1, sources: 1 })
  await service.close()
})

test('a clip whose result is lost in a failover is made again, within ten minutes of the first attempt', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps } = service
  const id = idIn(await service.upload(gif(58, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' }))
  const { rows } = await deps.pool.query('select id from sources')
  const job = { id: randomUUID(), data: { sourceId: rows[0].id }, retryCount: 0, signal: new AbortController().signal }
  const loseCommits = await rememberRows(deps.pool, ['clips', 'sources', 'renditions', 'blobs'])
  await transcodeSource(deps, job)
  const etag = async () => (await service.call('HEAD', `/f/${id}.mp4`)).headers.get('etag')
  const first = await etag()
  expect(first).not.toBeNull()
  service.clock.advance({ seconds: 599 })
  await cleanUp(deps)
  await loseCommits()
  const state = async () => (await deps.pool.query('select state from sources')).rows[0].state
  expect(await state()).toBe('processing')
  await transcodeSource(deps, job)
  expect(await state()).toBe('ready')
  expect(await etag()).toBe(first)
  await service.close()
})

/** The returned function makes these tables what they are now. */
async function rememberRows(pool: Deps['pool'], tables: string[]) {
  const kept = await Promise.all(
    tables.map(async (table) => {
      const { rows } = await pool.query(`select coalesce(jsonb_agg(kept), '[]') as rows from ${table} kept`)
      return { table, rows: JSON.stringify(rows[0].rows) }
    }),
  )
  return async () => {
    const client = await pool.connect()
    await client.query('begin; set local session_replication_role = replica')
    for (const { table, rows } of kept) {
      await client.query(`delete from ${table}`)
      await client.query(`insert into ${table} select * from jsonb_populate_recordset(null::${table}, $1)`, [rows])
    }
    await client.query('commit')
    client.release()
  }
}

test('a clip that no attempt can make is failed for good, by the last attempt or in the place of dead workers', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps } = service
  const later = { prefer: 'respond-async' }
  const accepted = await Promise.all([1, 2].map((n) => service.upload(gif(60 + n, 20, [{ delay: 10 }]), [], later)))
  const { rows } = await deps.pool.query('select id, encode(sha256, $1) as sha256 from sources', ['hex'])
  const job = (sourceId: string, retryCount: number) => ({
    id: randomUUID(),
    data: { sourceId },
    retryCount,
    signal: new AbortController().signal,
  })
  for (const { sha256 } of rows) await deps.blobs.delete({ sha256, extension: 'source' })

  await expect(transcodeSource(deps, job(rows[0].id, 0))).rejects.toThrow('is not in the store')
  await transcodeSource(deps, job(rows[0].id, TRANSCODE_QUEUE.retryLimit))
  await failDeadSource(deps, job(rows[1].id, TRANSCODE_QUEUE.retryLimit))
  for (const answer of accepted) {
    const { body } = await service.get(`/media/${idIn(answer)}`, { token: service.token })
    expect(body.success).toMatchObject({ state: 'failed', failure: { code: 'internal' } })
  }
  expect(await service.listFiles()).toEqual([])
  await service.close()
})

/** The same service with an ffmpeg whose disk is full. */
async function withFullDisk({ deps }: TestService) {
  const path = await programThat('echo No space left on device >&2; exit 1')
  return { ...deps, tools: { ...deps.tools, ffmpeg: { ...deps.tools.ffmpeg, path } } }
}

test('a full disk uses up no attempts: the clip is retried for a day at growing intervals', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { pool } = service.deps
  await service.upload(gif(70, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' })
  const { rows } = await pool.query('select id from sources')
  const deps = await withFullDisk(service)
  const { retryLimit: retryCount } = TRANSCODE_QUEUE
  const job = { id: randomUUID(), data: { sourceId: rows[0].id }, retryCount, signal: new AbortController().signal }
  const state = async () => (await pool.query('select state from sources')).rows[0].state
  const tryOnce = async () => {
    await pool.query('delete from media_queue.job')
    await transcodeSource(deps, job)
    const { rows: jobs } = await pool.query(
      'select retry_count, round(extract(epoch from start_after - created_on))::int as wait from media_queue.job',
    )
    return jobs
  }
  expect(await tryOnce()).toEqual([{ retry_count: 0, wait: 10 }])
  service.clock.advance({ seconds: 60 })
  expect(await tryOnce()).toEqual([{ retry_count: 0, wait: 30 }])
  service.clock.advance({ seconds: 86_300 })
  expect(await tryOnce()).toEqual([{ retry_count: 0, wait: 600 }])
  expect(await state()).toBe('processing')

  // The disk has space again.
  await pool.query('update media_queue.job set start_after = now()')
  await service.startWorker()
  await expect.poll(state).toBe('ready')
  await service.close()
})

test('a clip whose disk stays full for a day is failed', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { deps } = service
  await service.upload(gif(71, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' })
  const { rows } = await deps.pool.query('select id from sources')
  service.clock.advance({ seconds: 86_401 })
  const { retryLimit: retryCount } = TRANSCODE_QUEUE
  const job = { id: randomUUID(), data: { sourceId: rows[0].id }, retryCount, signal: new AbortController().signal }
  await transcodeSource(await withFullDisk(service), job)
  const { rows: ended } = await deps.pool.query('select state, error_code from sources')
  expect(ended).toEqual([{ state: 'failed', error_code: 'internal' }])
  await service.close()
})

test.each([{ when: 'before it began' }, { when: 'on the way' }])(
  'a worker that lost its claim $when changes nothing',
  async ({ when }) => {
    const claim = new AbortController()
    const lose = () => claim.abort(new Error('claim lost'))
    if (when === 'before it began') lose()
    const ffmpeg = await heldFfmpeg()
    const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' }, { tools: ffmpeg.tools })
    await service.upload(await clip('small-sound.mp4'), [], { prefer: 'respond-async' })
    const { rows } = await service.deps.pool.query('select id from sources')
    const job = {
      id: randomUUID(),
      data: { sourceId: rows[0].id },
      retryCount: TRANSCODE_QUEUE.retryLimit,
      signal: claim.signal,
    }
    const transcoding = expect(transcodeSource(service.deps, job)).rejects.toThrow('claim lost')
    if (when === 'on the way') await ffmpeg.hasBegun().then(lose)
    await transcoding
    expect((await service.deps.pool.query('select state from sources')).rows).toEqual([{ state: 'processing' }])
    expect(await temporary(service)).toEqual([])
    await service.close()
  },
)

test('a stalled PostgreSQL is not flooded with connections: requests wait for one of twenty', async () => {
  const service = await startTestService({ MEDIA_DB_MAX_POOL_SIZE: '', MEDIA_WORKERS_ENABLED: 'false' })
  const { pool } = service.deps
  const lock = await pool.connect()
  await lock.query('begin; lock table clips in access exclusive mode')
  const answers = Array.from({ length: 60 }, () => service.get('/f/AAAAAAAA.mp4'))
  await expect.poll(() => pool.totalCount + pool.waitingCount).toBeGreaterThan(50)
  expect(pool.totalCount).toBe(20)
  await lock.query('rollback')
  lock.release()
  expect(new Set((await Promise.all(answers)).map(({ status }) => status))).toEqual(new Set([404]))
  await service.close()
})

test('with a namespace, all tables and queues have its names', async () => {
  const service = await startTestService({
    MEDIA_DB_NAMESPACE: 'acme',
    MEDIA_MIGRATE_ON_START: 'true',
    MEDIA_BOOTSTRAP_TOKEN: 'a-first-token-of-20-characters',
  })
  const id = idIn(await service.upload(gif(90, 20, [{ delay: 10 }])))
  expect((await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })).status).toBe(204)
  service.clock.advance({ seconds: 601 })
  await cleanUp(service.deps)
  expect(await service.countRows()).toEqual({ clips: 0, sources: 0 })
  const { rows } = await service.deps.pool.query('select count(*)::int as count from acme_clips')
  expect(rows).toEqual([{ count: 1 }])
  await service.close()
})
