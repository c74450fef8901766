import { afterAll, beforeAll, expect, test } from 'vitest'
import { startWorker } from '../src/worker.ts'
import { openStream, setProgressOf } from './clients/event-stream.ts'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, type TestService } from './service.ts'

let service: TestService
const later = { prefer: 'respond-async' }
let sizes = 20
const newClip = async () =>
  idIn(await service.upload(gif(sizes++, 10, [{ delay: 10 }, { delay: 10, color: 1 }]), [], later))

beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' }, { timeLimits: { heartbeatMs: 50 } })
})
afterAll(() => service.close())

const open = (id: string, headers: Record<string, string> = {}, of = service) => openStream(of, id, headers)
const setProgress = (id: string, progress: number) => setProgressOf(service, id, progress)

test('the state comes at once, then each change; comments between them keep the connection open', async () => {
  const id = await newClip()
  const stream = await open(id)
  expect([stream.status, stream.headers['content-type'], stream.headers['cache-control']]).toEqual([
    200,
    'text/event-stream; charset=utf-8',
    'no-store',
  ])
  await expect.poll(stream.events).toEqual([['processing', { state: 'processing', progress: 0 }]])
  expect(stream.text).toMatch(/^retry: \d+\n\n/)
  await expect.poll(() => stream.text).toContain('\n: still here\n')
  await setProgress(id, 0.5)
  await expect.poll(() => stream.events().at(-1)).toEqual(['processing', { state: 'processing', progress: 0.5 }])
  await service.call('DELETE', `/media/${id}`, { headers: { token: service.token } })
  await expect.poll(() => stream.isOver).toBe(true)
  expect(stream.events().at(-1)).toEqual(['deleted', { state: 'deleted', progress: 0 }])
})

test('the stream ends when the clip is ready or failed, even for a late client; a reconnect after the end gets 204', async () => {
  const id = await newClip()
  const failing = await newClip()
  const streams = [await open(id), await open(id), await open(failing)]
  await service.deps.pool.query(
    `update sources set state = 'failed', error_code = 'corrupt_media', finished_at = now()
     where id = (select source_id from clips where id = $1)`,
    [failing],
  )
  const stopWorker = await startWorker(service.deps)
  await expect.poll(() => streams.every(({ isOver }) => isOver)).toBe(true)
  await stopWorker()
  for (const stream of streams.slice(0, 2))
    expect(stream.events().at(-1)).toEqual(['ready', { state: 'ready', progress: 1 }])
  expect(streams[2]?.events().at(-1)).toEqual([
    'failed',
    { state: 'failed', progress: 0, failure: { code: 'corrupt_media', message: 'The file is damaged or incomplete.' } },
  ])
  const late = await service.get(`/media/${id}/events`, { token: service.token })
  expect(late.text).toMatch(/^retry: 2000\n\nid: ready\nevent: ready\ndata: .*\n\n$/)
  expect((await service.get(`/media/${id}/events`, { token: service.token, 'last-event-id': 'ready' })).status).toBe(
    204,
  )
})

test('only the owner may open the stream', async () => {
  const id = await newClip()
  const { token } = await service.newToken()
  const status = async (headers: Record<string, string>) => (await service.get(`/media/${id}/events`, headers)).status
  expect([await status({}), await status({ token })]).toEqual([401, 404])
  const { token: writer } = await service.newToken({ scopes: ['write'] })
  expect(await status({ token: writer })).toBe(403)
  expect((await service.get('/media/xxxxxxxx/events', { token })).status).toBe(404)
})

test('a token has a limit of open streams; a disconnect frees its slot; a stop ends all', async () => {
  const own = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await own.upload(gif(20, 20, [{ delay: 10 }]), [], later))
  const streams: Awaited<ReturnType<typeof open>>[] = []
  for (let n = 0; n < 16; n++) streams.push(await open(id, {}, own))
  const refused = await own.get(`/media/${id}/events`, { token: own.token })
  expect([refused.status, refused.body.error.code]).toEqual([429, 'queue_full'])
  streams[0]?.abort()
  const again = async () => {
    const stream = await open(id, {}, own)
    if (stream.status === 200) streams.push(stream)
    return stream.status
  }
  await expect.poll(again).toBe(200)
  await own.close()
  // The client notices the end a moment later.
  await expect.poll(() => streams.every(({ isOver }) => isOver)).toBe(true)
})
