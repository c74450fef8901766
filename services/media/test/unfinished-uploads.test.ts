// Resumable uploads that are not finished: how many a caller may have, and for how long. Also what becomes of them when
// two processes finish one at once. When the one that has it is killed: spawned-processes.slow.test.ts.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { expect, test } from 'vitest'
import { gif } from './gif-bytes.ts'
import { type Answer, createDatabase, startTestService, type TestService } from './service.ts'
import { arrived, codeOf, openPiece, PIECE, tusOf } from './tus.ts'

let sizes = 20
const newGif = () => gif(sizes++, 10, [{ delay: 10 }, { delay: 10, color: 1 }])
const noWorkers = { MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' }

test('a caller has a limit of parallel and of unfinished uploads; a piece that is too slow is ended', async () => {
  const service = await startTestService({
    ...noWorkers,
    ...{ MEDIA_PARALLEL_PER_TOKEN: '1', MEDIA_RATE_LIMIT_UPLOAD: '9/1h', MEDIA_UPLOAD_AUTH: 'optional' },
  })
  const tus = tusOf(service)
  const path = await tus.begin(50_000)
  const held = openPiece(service, path, { 'content-length': 50_000 })
  held.write(Buffer.alloc(100))
  await arrived(service, path, 100)
  expect(codeOf(await tus.call('POST', '/tus', { 'upload-length': 10 }))).toEqual([429, 'queue_full'])
  expect(codeOf(await tus.send(path, 0, Buffer.alloc(10)))).toEqual([429, 'queue_full'])
  held.abort()
  await expect.poll(() => service.deps.uploads.taken().used).toBe(0)
  // A short limit for the crawling piece alone: on a busy machine other requests would exceed it.
  const { timeLimits } = service.deps
  const { uploadWindowMs } = timeLimits
  timeLimits.uploadWindowMs = 300
  const slow = openPiece(service, path, { 'content-length': 49_900 }, 100)
  expect(await slow.answer).toBe(408)
  slow.abort()
  timeLimits.uploadWindowMs = uploadWindowMs
  await expect.poll(() => tus.offset(path)).toBe(100)

  for (let n = 1; n < 8; n++) await tus.begin(10)
  const { status, headers, body } = await tus.call('POST', '/tus', { 'upload-length': 10 })
  expect([status, body.error.code, headers.get('ratelimit-remaining')]).toEqual([429, 'queue_full', '1'])
  await tus.call('DELETE', path)
  await tus.begin(10)
  expect(codeOf(await tus.call('POST', '/tus', { 'upload-length': 10 }))).toEqual([429, 'rate_limited'])

  const anybody = { 'tus-resumable': '1.0.0' }
  const begun = await service.call('POST', '/tus', { headers: { ...anybody, 'upload-length': '10' } })
  const own = new URL(begun.headers.get('location') as string).pathname
  expect((await service.call('HEAD', own, { headers: anybody })).status).toBe(200)
  expect((await tus.call('HEAD', own)).status).toBe(404)
  expect((await service.call('HEAD', path, { headers: anybody })).status).toBe(404)
  await service.close()
})

test('an upload that two processes finish at once is one clip, and counts once', async () => {
  const database = await createDatabase()
  const workDir = await mkdtemp(join(tmpdir(), 'media-tus-test-'))
  const settings = { ...noWorkers, MEDIA_DATABASE_URL: database.url, MEDIA_WORK_DIR: workDir }
  const services = await Promise.all([startTestService(settings), startTestService(settings)])
  const [first, second] = services as [TestService, TestService]
  const bytes = newGif()
  const path = await tusOf(first).begin(bytes.length)
  await tusOf(first).send(path, 0, bytes.subarray(0, -1))
  const last = [path, bytes.length - 1, bytes.subarray(-1)] as const
  const answers = await Promise.all([tusOf(first).send(...last), tusOf(second, first.token).send(...last)])
  expect(answers.map(({ status }) => status)).toEqual([204, 204])
  expect(new Set(answers.map(({ headers }) => headers.get('x-media-id'))).size).toBe(1)
  const { rows: clips } = await first.deps.pool.query('select id from clips')
  expect(clips).toHaveLength(1)
  const { rows: days } = await first.deps.pool.query('select sum(bytes)::int as bytes from token_days')
  expect(days).toEqual([{ bytes: bytes.length }])
  for (const service of services) await service.close()
  await database.drop()
  await rm(workDir, { recursive: true, force: true })
})

test('of two lengths that are declared at once for an upload without one, one holds and the other is refused', async () => {
  const database = await createDatabase()
  const workDir = await mkdtemp(join(tmpdir(), 'media-tus-test-'))
  const settings = { ...noWorkers, MEDIA_DATABASE_URL: database.url, MEDIA_WORK_DIR: workDir }
  const [first, second] = [await startTestService(settings), await startTestService(settings)]
  const { headers } = await tusOf(first).call('POST', '/tus', { 'upload-defer-length': '1' })
  const path = new URL(headers.get('location') as string).pathname
  // Both read the upload without a length, and then wait for its row.
  const holder = await first.deps.pool.connect()
  await holder.query('begin')
  await holder.query('select from resumable_uploads for update')
  const declare = (service: TestService, bytes: number) =>
    tusOf(service, first.token).send(path, 0, Buffer.alloc(0), { 'upload-length': String(bytes) })
  const declared = [declare(first, 30), declare(second, 40)]
  await expect.poll(() => countLockWaits(holder)).toBe(2)
  await holder.query('commit')
  holder.release()
  const answers = await Promise.all(declared)
  expect(answers.map(({ status }) => status).toSorted()).toEqual([204, 409])
  const [holds, refused] = answers.toSorted((a, b) => a.status - b.status) as [Answer, Answer]
  expect(refused.body.error.code).toBe('offset_conflict')
  const { headers: now } = await tusOf(first).call('HEAD', path)
  expect(now.get('upload-length')).toBe(answers.indexOf(holds) === 0 ? '30' : '40')
  for (const service of [first, second]) await service.close()
  await database.drop()
  await rm(workDir, { recursive: true, force: true })
})

test('the id of an upload without a token opens it from any address, and no other id does', async () => {
  const service = await startTestService({
    ...noWorkers,
    ...{ MEDIA_UPLOAD_AUTH: 'optional', MEDIA_RATE_LIMIT_HEADER: 'x-real-ip' },
  })
  const from = (address: string) => ({ 'tus-resumable': '1.0.0', 'x-real-ip': address })
  const headers = { ...from('192.0.2.1'), 'upload-length': '100' }
  const begun = await service.call('POST', '/tus', { headers })
  const path = new URL(begun.headers.get('location') as string).pathname
  expect(path).toMatch(/^\/tus\/[0-9A-Za-z]{32}$/)
  const elsewhere = from('198.51.100.9')
  const piece = { ...elsewhere, 'content-type': PIECE, 'upload-offset': '0' }
  expect((await service.call('PATCH', path, { headers: piece, body: new Uint8Array(10) })).status).toBe(204)
  expect((await service.call('HEAD', path, { headers: elsewhere })).headers.get('upload-offset')).toBe('10')
  const other = path.replace(/.$/, (last) => (last === 'A' ? 'B' : 'A'))
  expect((await service.call('DELETE', other, { headers: elsewhere })).status).toBe(404)
  expect((await service.call('DELETE', path, { headers: elsewhere })).status).toBe(204)
  await service.close()
})

test('a visitor without a token has a limit of unfinished uploads per address, and an upload without a byte expires soon', async () => {
  const service = await startTestService({
    ...noWorkers,
    MEDIA_PARALLEL_PER_TOKEN: '1',
    MEDIA_UPLOAD_AUTH: 'optional',
    MEDIA_RATE_LIMIT_ANONYMOUS: '100/1h',
    MEDIA_RATE_LIMIT_HEADER: 'x-real-ip',
  })
  const from = (address: string) => ({ 'tus-resumable': '1.0.0', 'x-real-ip': address })
  const begin = (address: string) =>
    service.call('POST', '/tus', { headers: { ...from(address), 'upload-length': '100' } })
  const pathOf = ({ headers }: Answer) => new URL(headers.get('location') as string).pathname
  const head = async (path: string) =>
    (await service.call('HEAD', path, { headers: from('192.0.2.1') })).headers.get('upload-expires')
  const begun = []
  for (let n = 0; n < 8; n++) begun.push(await begin('192.0.2.1'))
  expect(codeOf(await begin('192.0.2.1'))).toEqual([429, 'queue_full'])
  expect((await begin('192.0.2.2')).status).toBe(201)

  const [empty, kept] = begun.map(pathOf) as [string, string]
  const hours = async (path: string) =>
    Math.round((Date.parse((await head(path)) ?? '') - service.clock.now().getTime()) / 36e5)
  expect([await hours(empty), await hours(kept)]).toEqual([0, 0])
  const piece = { ...from('192.0.2.1'), 'content-type': PIECE, 'upload-offset': '0' }
  expect((await service.call('PATCH', kept, { headers: piece, body: new Uint8Array(1) })).status).toBe(204)
  expect((await service.call('PATCH', empty, { headers: piece, body: new Uint8Array(0) })).status).toBe(204)
  expect([await hours(empty), await hours(kept)]).toEqual([0, 24])
  service.clock.advance({ seconds: 901 })
  expect((await service.call('HEAD', empty, { headers: from('192.0.2.1') })).status).toBe(410)
  expect((await begin('192.0.2.1')).status).toBe(201)
  service.clock.advance({ seconds: 80_000 })
  expect((await service.call('HEAD', kept, { headers: from('192.0.2.1') })).status).toBe(200)
  await service.close()
})
