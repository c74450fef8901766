import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { countLockWaits } from '@services/common/testing/database/lock-waits'
import { createFarServer } from '@services/common/testing/http/far-server'
import { expect, onTestFinished, test } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { clip } from './clips.ts'
import { mediaHere } from './command-line.ts'
import { newGif, withComment } from './gif-bytes.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { holdCalls } from './hold-calls.ts'
import { type Answer, formOf, idIn, settingsOf, startTestService, type TestService } from './service.ts'
import { tusOf } from './tus.ts'

const noWorkers = { MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0', MEDIA_PARALLEL_PER_TOKEN: '20' }
const SIZE = newGif().length

const outcome = ({ status, body }: Answer) => (status === 201 ? 201 : `${status} ${body.error.code}`)
const counts = (answers: Answer[]) =>
  Object.fromEntries(Object.entries(Object.groupBy(answers, outcome)).map(([key, same]) => [key, same?.length]))
const left = ({ headers }: Answer, name: string) => headers.get(`x-${name}-remaining`)
const remove = (service: TestService, answer: Answer, token: string) =>
  service.call('DELETE', `/media/${idIn(answer)}`, { headers: { token } })

test('a quota reserves space for the files of waiting clips under concurrent uploads; a deletion or failure frees it', async () => {
  const limit = 1_000_000
  const service = await startTestService({ ...noWorkers, MEDIA_QUOTA_BYTES: String(limit) })
  const { token, deps } = service
  const answers = await Promise.all(Array.from({ length: 10 }, () => service.upload(newGif())))
  const { 201: accepted = 0, ...refusals } = counts(answers)
  expect(accepted).toBeGreaterThan(1)
  expect(refusals).toEqual({ '429 queue_full': 10 - accepted })
  const refused = await service.upload(newGif())
  const { used, reserved, ...details } = refused.body.error.details
  expect([details, used]).toEqual([{ limit }, accepted * SIZE])
  expect(used + reserved + SIZE).toBeGreaterThan(limit)
  const usage = await mediaHere(['tokens', 'usage', '--json'], settingsOf(deps.config.database.url, service.blobsDir))
  expect(JSON.parse(usage.stdout)).toContainEqual(
    expect.objectContaining({ stored: { clips: accepted, bytes: used, reserved_bytes: reserved } }),
  )
  expect([refused.headers.get('x-quota-limit'), left(refused, 'quota')]).toEqual([
    String(limit),
    String(Math.max(0, limit - used - reserved)),
  ])
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0)
  // A refused upload leaves nothing behind and does not affect other tokens.
  expect((await service.traces()).clips).toBe(accepted)
  const other = await service.newToken()
  expect((await service.upload(newGif(), [], { token: other.token })).status).toBe(201)

  await remove(service, answers.find(({ status }) => status === 201) as Answer, token)
  expect(outcome(await service.upload(newGif()))).toBe(201)
  expect(outcome(await service.upload(newGif()))).toBe('429 queue_full')
  await deps.pool.query(`update sources set state = 'failed', error_code = 'internal', finished_at = now()`)
  expect(left(await service.upload(newGif()), 'quota')).toBe(String(limit))
  await deps.pool.query('update api_tokens set limits = $1', [{ quota_bytes: SIZE }])
  expect(outcome(await service.upload(newGif()))).toBe('507 quota_exceeded')
  await service.close()
})

/** The same clip with other bytes, in a comment. */
function copies(count: number): Buffer[] {
  const clip = newGif()
  return Array.from({ length: count }, (_, n) => withComment(clip, `free${n}`))
}

test('waiting and concurrent uploads, imports and pieces exceed a quota by the files of one clip at most', async () => {
  // The last clip is not held: it is the measure for the others.
  const { tools, release } = await heldFfmpeg('free[0-8]')
  const settings = { MEDIA_PARALLEL_PER_TOKEN: '20', MEDIA_QUEUE_LIMIT: '100', MEDIA_SYNC_WAIT: '0' }
  const service = await startTestService(settings, { tools })
  const bytes = copies(10)
  const site = createFarServer(({ url }, response) => response.end(bytes[Number(url?.slice(1))])).listen(0, '127.0.0.1')
  await once(site, 'listening')
  onTestFinished(() => void site.close())
  const { port } = site.address() as AddressInfo
  const stored = async (id: string) =>
    (await service.deps.pool.query('select * from token_storage where token_id = $1', [id])).rows[0]
  const first = await service.newToken()
  const measured = idIn(await service.upload(bytes[9] as Buffer, [], { token: first.token }))
  const stateOf = async (id: string) => (await service.get(`/media/${id}`, { token: first.token })).body.success.state
  await expect.poll(() => stateOf(measured)).toBe('ready')
  const one = Number((await stored(first.id)).bytes)

  const ways = {
    sync: (n: number, token: string) => service.upload(bytes[n] as Buffer, [], { token }),
    later: (n: number, token: string) => service.upload(bytes[n] as Buffer, [], { token, prefer: 'respond-async' }),
    import: (n: number, token: string) =>
      service.importFrom({ source: `http://127.0.0.1:${port}/${n}` }, { token, prefer: 'respond-async' }),
    pieces: (n: number, token: string) =>
      tusOf(service, token).call(
        'POST',
        '/tus',
        {
          'upload-length': bytes[n]?.length ?? 0,
          'content-type': 'application/offset+octet-stream',
          prefer: 'respond-async',
        },
        bytes[n],
      ),
  }
  const quota = Math.floor(1.5 * one)
  const { token, id } = await service.newToken({ limits: { quota_bytes: quota } })
  const order = (['sync', 'later', 'import', 'pieces'] as const).flatMap((way) => [way, way])
  const answers = await Promise.all(order.map((way, n) => ways[way](n, token)))
  const { 201: accepted, ...refusals } = counts(answers)
  expect([accepted, Object.keys(refusals)]).toEqual([1, ['429 queue_full']])
  await release()
  // A retry succeeds while quota is left.
  const comeBack = async () => {
    const answer = await ways.later(8, token)
    return answer.status === 429 ? 'wait' : outcome(answer)
  }
  await expect.poll(comeBack).toBe(201)
  await expect.poll(async () => outcome(await ways.sync(0, token))).toBe('507 quota_exceeded')
  const kept = await stored(id)
  expect(Number(kept.bytes)).toBeGreaterThan(quota)
  expect(Number(kept.bytes)).toBeLessThanOrEqual(quota + one)
  expect(Number(kept.reserved_bytes)).toBe(0)
  await service.close()
})

test('an upload whose declared length exceeds the quota is refused before its body is read', async () => {
  const service = await startTestService({ ...noWorkers, MEDIA_QUOTA_BYTES: '1000' })
  const { status, body } = await service.call('POST', '/media/upload', {
    body: new Uint8Array(9_000_000),
    headers: { token: service.token, 'content-type': 'multipart/form-data; boundary=b' },
  })
  expect([status, body.error.code]).toEqual([507, 'quota_exceeded'])
  expect((await service.importFrom({ source: 'http://127.0.0.1:9/' })).status).toBe(424)
  await service.close()
})

test('a clip counts its source and its files, for each owner, and nothing once it has failed', async () => {
  const service = await startTestService()
  const path = await clip('plain.gif')
  const [first, second] = [await service.newToken({ limits: { quota_bytes: 1e9 } }), await service.newToken()]
  const added = await service.ready(path, [], { token: first.token })
  const { source, sizes } = (await service.get(`/media/${idIn(added)}`, { token: first.token })).body.success
  const files = Object.values<{ bytes: number }>(sizes).reduce((sum, { bytes }) => sum + bytes, source.bytes)
  const next = await service.upload(path, [], { token: first.token })
  expect(left(next, 'quota')).toBe(String(1e9 - files))
  await service.deps.pool.query('update api_tokens set limits = $1 where id = $2', [
    { quota_bytes: files - 1 },
    second.id,
  ])
  // Bytes that are already stored cost as much as new ones.
  expect(outcome(await service.upload(path, [], { token: second.token }))).toBe('507 quota_exceeded')
  await service.deps.pool.query(`update sources set state = 'failed', error_code = 'internal', finished_at = now()`)
  expect(left(await service.upload(newGif(), [], { token: first.token }), 'quota')).toBe(String(1e9))
  await service.close()
})

test('a token has a daily byte limit, per UTC day, across processes and concurrent uploads', async () => {
  const service = await startTestService({ ...noWorkers, MEDIA_DAILY_BYTES: String(3 * SIZE) })
  const noon = new Date(service.clock.now()).setUTCHours(36, 0, 0, 0)
  service.clock.advance({ seconds: (noon - service.clock.now().getTime()) / 1000 })
  const answers = await Promise.all(Array.from({ length: 6 }, () => service.upload(newGif())))
  expect(counts(answers)).toEqual({ 201: 3, '429 daily_bytes_exceeded': 3 })
  // A deletion does not give the day's bytes back.
  await remove(service, answers.find(({ status }) => status === 201) as Answer, service.token)
  const refused = await service.upload(newGif())
  expect(outcome(refused)).toBe('429 daily_bytes_exceeded')
  expect(refused.headers.get('retry-after')).toBe(String(12 * 3600))
  expect([refused.headers.get('x-daily-bytes-limit'), left(refused, 'daily-bytes')]).toEqual([String(3 * SIZE), '0'])
  const special = await service.newToken({ limits: { daily_bytes: 4 * SIZE } })
  const four = await Promise.all(
    Array.from({ length: 5 }, () => service.upload(newGif(), [], { token: special.token })),
  )
  expect(counts(four)).toEqual({ 201: 4, '429 daily_bytes_exceeded': 1 })
  service.clock.advance({ seconds: 12 * 3600 })
  expect(outcome(await service.upload(newGif()))).toBe(201)
  await service.close()
})

test.each([
  ['its storage quota', (one: number) => ({ quota_bytes: one })],
  ['its share of the queue', () => ({ queued: 1 })],
])('uploads of a token that end before and after midnight keep %s together', async (_limit, limitsFor) => {
  const service = await startTestService(noWorkers)
  const { clock, deps } = service
  expect(outcome(await service.upload(newGif()))).toBe(201)
  const { rows } = await deps.pool.query('select (bytes + reserved_bytes)::int as one from token_storage')
  const { token } = await service.newToken({ limits: limitsFor(rows[0].one) })
  const midnight = new Date(clock.now()).setUTCHours(24, 0, 0, 0)
  clock.advance({ seconds: (midnight - clock.now().getTime()) / 1000 - 1 })
  const queueing = holdCalls(deps.queue, 'send', { first: true })
  const before = service.upload(newGif(), [], { token })
  await queueing.reached
  clock.advance({ seconds: 2 })
  let isAnswered = false
  const after = service.upload(newGif(), [], { token }).finally(() => {
    isAnswered = true
  })
  await expect.poll(async () => isAnswered || (await countLockWaits(deps.pool)) === 1).toBe(true)
  queueing.release()
  expect([outcome(await before), outcome(await after)]).toEqual([201, '429 queue_full'])
  await service.close()
})

test('no token can fill the queue by itself: each has a share, which can be set per token', async () => {
  const service = await startTestService({ ...noWorkers, MEDIA_QUEUE_LIMIT: '6', MEDIA_RATE_LIMIT_UPLOAD: '4/1h' })
  const same = newGif()
  const first = await service.upload(same)
  const answers = await Promise.all(Array.from({ length: 3 }, () => service.upload(newGif())))
  expect(counts([first, ...answers])).toEqual({ 201: 3, '429 queue_full': 1 })
  const refused = await service.upload(newGif())
  expect(outcome(refused)).toBe('429 queue_full')
  expect([refused.headers.get('ratelimit-remaining'), Number(refused.headers.get('retry-after')) > 0]).toEqual([
    '1',
    true,
  ])
  const special = await service.newToken({ limits: { queued: 1 } })
  const other = { token: special.token }
  expect(outcome(await service.upload(newGif(), [], other))).toBe(201)
  expect(outcome(await service.upload(newGif(), [], other))).toBe('429 queue_full')
  // Finished clips do not count against the share.
  await service.deps.pool.query(`update sources set state = 'failed', error_code = 'internal', finished_at = now()`)
  expect(outcome(await service.upload(newGif()))).toBe(201)
  await service.close()
})

test('an upload without a token is deleted with the token of its answer, once, or after thirty days', async () => {
  const service = await startTestService({
    ...noWorkers,
    MEDIA_UPLOAD_AUTH: 'optional',
    MEDIA_RATE_LIMIT_ANONYMOUS: '100/1h',
  })
  const add = async () => service.call('POST', '/media/upload', { body: await formOf(newGif()) })
  const [first, second] = [await add(), await add()]
  const deleteToken = first.headers.get('x-delete-token') ?? ''
  expect(deleteToken).toMatch(/^md_[0-9A-Za-z]{22}$/)
  const end = new Date(service.clock.now().getTime() + 30 * 86_400_000).toISOString()
  expect(first.headers.get('x-expires-at')).toBe(end)
  const { rows } = await service.deps.pool.query('select * from clips')
  expect(JSON.stringify(rows)).not.toContain(deleteToken)

  const removeWith = async (answer: Answer, headers: Record<string, string>) =>
    (await service.call('DELETE', `/media/${idIn(answer)}`, { headers })).status
  expect(await removeWith(first, {})).toBe(401)
  expect(await removeWith(first, { 'x-delete-token': `${deleteToken}x` })).toBe(404)
  expect(await removeWith(second, { 'x-delete-token': deleteToken })).toBe(404)
  const owned = await service.upload(newGif())
  expect(owned.headers.get('x-delete-token')).toBeNull()
  expect(await removeWith(owned, { 'x-delete-token': '' })).toBe(404)
  expect(await removeWith(first, { 'x-delete-token': deleteToken })).toBe(204)
  expect(await removeWith(first, { 'x-delete-token': deleteToken })).toBe(410)
  expect((await service.get(`/gif/${idIn(first)}`)).status).toBe(410)

  service.clock.advance({ seconds: 30 * 86_400 - 1 })
  await cleanUp(service.deps)
  expect((await service.get(`/gif/${idIn(second)}`)).status).toBe(200)
  service.clock.advance({ seconds: 2 })
  await cleanUp(service.deps)
  expect((await service.get(`/gif/${idIn(second)}`)).status).toBe(410)
  expect((await service.get(`/gif/${idIn(owned)}`)).status).toBe(200)
  await service.close()
})
