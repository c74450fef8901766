// A storage that does not answer one upload: the others of its token go on, and its limits hold all the same.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { newGif } from './gif-bytes.ts'
import { holdCalls } from './hold-calls.ts'
import { type Answer, startTestService, type TestService } from './service.ts'

let service: TestService
beforeAll(async () => {
  service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_SYNC_WAIT: '0' })
})
afterAll(() => service.close())

const SIZE = newGif().length

const outcome = ({ status, body }: Answer) => (status === 201 ? 201 : `${status} ${body.error.code}`)
/** The first request for a stored file in an acceptance. */
const holdStorage = () => holdCalls(service.deps.blobs, 'stat', { first: true })
const dayOf = async (id: string) =>
  (await service.deps.pool.query('select clips::int, bytes::int from token_days where token_id = $1', [id])).rows

const limits = {
  daily_bytes: { limits: { daily_bytes: SIZE }, refusal: '429 daily_bytes_exceeded' },
  queued: { limits: { queued: 1 }, refusal: '429 queue_full' },
}

test.for(Object.keys(limits))(
  'an upload that waits for the storage delays no other of its token, and both keep its limit of %s',
  async (name) => {
    const { limits: own, refusal } = limits[name as keyof typeof limits]
    const { token, id } = await service.newToken({ limits: own })
    const upload = () => service.upload(newGif(), [], { token })
    const storage = holdStorage()
    const waiting = upload()
    await storage.reached
    expect(outcome(await upload())).toBe(201)
    storage.release()
    expect(outcome(await waiting)).toBe(refusal)
    expect(await dayOf(id)).toEqual([{ clips: 1, bytes: SIZE }])
    expect((await service.deps.pool.query('select from clips where token_id = $1', [id])).rowCount).toBe(1)
  },
)

test('the same bytes of other tokens are accepted while an upload of one of them waits for the storage', async () => {
  const shared = newGif()
  expect(outcome(await service.upload(shared))).toBe(201)
  const { token, id } = await service.newToken({ limits: { daily_bytes: 2 * SIZE } })
  const storage = holdStorage()
  const waiting = service.upload(newGif(), [], { token })
  await storage.reached
  expect(outcome(await service.upload(shared, [], { token }))).toBe(201)
  storage.release()
  expect(outcome(await waiting)).toBe(201)
  expect(await dayOf(id)).toEqual([{ clips: 2, bytes: 2 * SIZE }])
})

test('an upload that the storage fails gives its bytes and its clip of the day back', async () => {
  const { token, id } = await service.newToken({ limits: { daily_bytes: SIZE } })
  const { blobs } = service.deps
  const { stat } = blobs
  blobs.stat = async () => {
    blobs.stat = stat
    throw new Error('the storage is away')
  }
  const { clips } = await service.countRows()
  expect((await service.upload(newGif(), [], { token })).status).toBe(500)
  expect(await dayOf(id)).toEqual([])
  expect((await service.countRows()).clips).toBe(clips)
  expect(outcome(await service.upload(newGif(), [], { token }))).toBe(201)
})
