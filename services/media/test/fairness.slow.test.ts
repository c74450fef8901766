// Clips of others beside slow and deleted ones, each made in full. The order of waiting clips: fairness.test.ts.
import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { transcodeSource } from '../src/make/jobs/transcode-source.ts'
import { gif, withComment } from './gif-bytes.ts'
import { heldFfmpeg } from './held-ffmpeg.ts'
import { createDatabase, idIn, startTestService, type TestService } from './service.ts'

const later = { prefer: 'respond-async' }
/** Other bytes for each width. */
const picture = (width: number) => gif(width, 10, [{ delay: 10 }])

/** Processes that share a database share its store. */
const storeOf = ({ blobsDir }: TestService) => ({ MEDIA_BLOBS_DIR: blobsDir, MEDIA_WORK_DIR: join(blobsDir, 'work') })

test.each([
  { processes: 1, concurrency: 1 },
  { processes: 1, concurrency: 2 },
  { processes: 2, concurrency: 1 },
])('clips of others are made while ten slow ones of one token run or wait, with %j', async (workers) => {
  const { processes, concurrency } = workers
  const database = await createDatabase()
  const { tools, release } = await heldFfmpeg('bomb')
  const settings = {
    MEDIA_DATABASE_URL: database.url,
    MEDIA_WORKER_CONCURRENCY: String(concurrency),
    MEDIA_QUEUE_LIMIT: '100',
  }
  const service = await startTestService(settings, { tools })
  const shared = { ...settings, ...storeOf(service) }
  const others = Array.from({ length: processes - 1 }, () => startTestService(shared, { tools }))
  const services = [...(await Promise.all(others)), service]
  const slow = await service.newToken()
  const bomb = (width: number) => withComment(picture(width), 'bomb')
  const bombs: string[] = []
  for (let n = 0; n < 10; n++) {
    bombs.push(idIn(await service.upload(bomb(30 + n), [], { ...later, token: slow.token })))
  }
  const atWork = async () => {
    const sql = `select count(*)::int as jobs from media_queue.job where name = 'transcode' and state = 'active'`
    return (await service.deps.pool.query(sql)).rows[0].jobs
  }
  await expect.poll(atWork).toBe(processes * concurrency)
  for (let n = 0; n < 3; n++) {
    const { token } = await service.newToken()
    const made = await service.upload(picture(50 + n), [], { token })
    expect([made.status, made.headers.get('x-media-state')]).toEqual([201, 'ready'])
  }
  await expect.poll(atWork).toBe(processes * concurrency)
  // Three are enough to see that they are made afterwards.
  for (const id of bombs.slice(3)) await service.call('DELETE', `/media/${id}`, { headers: { token: slow.token } })
  await release()
  const processing = `select from sources where state = 'processing'`
  await expect.poll(async () => (await service.deps.pool.query(processing)).rowCount).toBe(0)
  for (const id of bombs.slice(0, 3)) expect((await service.get(`/f/${id}.mp4`)).status).toBe(200)
  for (const each of services) await each.close()
  await database.drop()
})

test('a clip that arrives while its deleted source is dropped is made, in either order', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const ids = []
  for (let n = 0; n < 6; n++) {
    const bytes = picture(30 + n)
    const first = idIn(await service.upload(bytes, [], later))
    await service.call('DELETE', `/media/${first}`, { headers: { token: service.token } })
    const { rows } = await service.deps.pool.query('select id from sources where clip_count = 0')
    const job = {
      id: randomUUID(),
      data: { sourceId: rows[0].id },
      retryCount: 0,
      signal: new AbortController().signal,
    }
    const [again] = await Promise.all([service.upload(bytes, [], later), transcodeSource(service.deps, job)])
    expect(again.status).toBe(201)
    ids.push(idIn(again))
  }
  await service.startWorker()
  const isReady = async (id: string) =>
    (await service.get(`/media/${id}`, { token: service.token })).body.success.state === 'ready'
  for (const id of ids) await expect.poll(() => isReady(id)).toBe(true)
  await service.close()
})
