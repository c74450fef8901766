import { expect } from 'vitest'
import { gif } from './gif-bytes.ts'
import { createDatabase, startTestService, type TestService, test } from './service.ts'

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
