import { expect } from 'vitest'
import { transcodeSource } from '../src/jobs/transcode-source.ts'
import { gif } from './gif-bytes.ts'
import { createDatabase, idIn, startTestService, type TestService, test } from './service.ts'

const later = { prefer: 'respond-async' }
/** Other bytes for each width. */
const picture = (width: number) => gif(width, 10, [{ delay: 10 }])
const add = async (service: TestService, token: string, width: number) =>
  (await service.upload(picture(width), [], { ...later, token })).status

test('a clip of one token waits for two of another that has many waiting, with two workers on one database', async () => {
  const database = await createDatabase()
  const settings = {
    MEDIA_DATABASE_URL: database.url,
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_WORKER_CONCURRENCY: '1',
  }
  const services = await Promise.all([startTestService(settings), startTestService(settings)])
  const [first, second] = services
  const [many, few] = [await first.newToken(), await first.newToken()]
  for (let n = 0; n < 8; n++) expect(await add(first, many.token, 30 + n)).toBe(201)
  expect(await add(second, few.token, 50)).toBe(201)
  await Promise.all(services.map((service) => service.startWorker()))

  const begun = async () => {
    const sql = 'select group_id from media_queue.job where started_on is not null order by started_on'
    return (await first.deps.pool.query(sql)).rows.map(({ group_id }) => group_id)
  }
  await expect.poll(async () => (await begun()).includes(few.id), { timeout: 8_000, interval: 20 }).toBe(true)
  expect((await begun()).indexOf(few.id)).toBeLessThanOrEqual(2)
  for (const service of services) await service.close()
  await database.drop()
})

test('who deletes what waits fills the queue no less: its share ends, others are let in, and nothing is made for nobody', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false', MEDIA_QUEUE_LIMIT: '4' })
  const other = await service.newToken()
  const addAndDelete = async (width: number) => {
    const added = await service.upload(picture(width), [], later)
    if (added.status !== 201) return added.body.error.code
    return (await service.call('DELETE', `/media/${idIn(added)}`, { headers: { token: service.token } })).status
  }
  const statuses = []
  for (let n = 0; n < 4; n++) statuses.push(await addAndDelete(30 + n))
  expect(statuses).toEqual([204, 204, 'queue_full', 'queue_full'])
  const kept = await service.upload(picture(50), [], { ...later, token: other.token })
  expect(kept.status).toBe(201)
  await service.startWorker()
  const stateOf = async () => (await service.get(`/media/${idIn(kept)}`, { token: other.token })).body.success.state
  await expect.poll(stateOf, { timeout: 8_000 }).toBe('ready')
  // Of what was deleted neither source nor original is left; its turns came first.
  expect(await service.traces()).toMatchObject({ sources: 1, files: { length: 4 } })
  expect(await addAndDelete(34)).toBe(204)
  await service.close()
})

test('a clip that comes while its deleted source is dropped is made, whoever is first', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const ids = []
  for (let n = 0; n < 6; n++) {
    const bytes = picture(30 + n)
    const first = idIn(await service.upload(bytes, [], later))
    await service.call('DELETE', `/media/${first}`, { headers: { token: service.token } })
    const { rows } = await service.deps.pool.query('select id from sources where clip_count = 0')
    const job = { id: '', data: { sourceId: rows[0].id }, retryCount: 0, signal: new AbortController().signal }
    const [again] = await Promise.all([service.upload(bytes, [], later), transcodeSource(service.deps, job)])
    expect(again.status).toBe(201)
    ids.push(idIn(again))
  }
  await service.startWorker()
  const isReady = async (id: string) =>
    (await service.get(`/media/${id}`, { token: service.token })).body.success.state === 'ready'
  for (const id of ids) await expect.poll(() => isReady(id), { timeout: 10_000 }).toBe(true)
  await service.close()
}, 30_000)

test('a token that filled the queue is told to come back, one that has nothing there is not', async () => {
  const service = await startTestService({
    MEDIA_WORKERS_ENABLED: 'false',
    MEDIA_QUEUE_LIMIT: '2',
    MEDIA_QUEUE_PER_TOKEN: '2',
  })
  const others = await Promise.all([1, 2, 3].map(() => service.newToken()))
  const [one, two, three] = others.map(({ token }) => token) as [string, string, string]
  const statuses = []
  const calls = [service.token, service.token, service.token, one, one, two, three]
  for (const [n, token] of calls.entries()) statuses.push(await add(service, token, 30 + n))
  expect(statuses).toEqual([201, 201, 503, 201, 503, 201, 503])
  await service.close()
})
