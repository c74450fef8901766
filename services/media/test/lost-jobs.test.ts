import { expect } from 'vitest'
import { cleanUp } from '../src/housekeeping.ts'
import { DEAD_TRANSCODE_QUEUE, TRANSCODE_QUEUE } from '../src/make/jobs/queues.ts'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, type TestService, test } from './service.ts'

const later = { prefer: 'respond-async' }
const picture = (width: number) => gif(width, 20, [{ delay: 10 }, { delay: 10, color: 1 }])

const jobsIn = async ({ deps }: TestService) =>
  (await deps.pool.query('select name, state from media_queue.job')).rows as { name: string; state: string }[]
const loseJobs = ({ deps }: TestService) => deps.pool.query('delete from media_queue.job')
const detailsOf = async (service: TestService, id: string) =>
  (await service.get(`/media/${id}`, { token: service.token })).body.success

/** One round of housekeeping, some minutes later; of several replicas at once where there are several. */
async function tidyUp(service: TestService, replicas = 1) {
  service.clock.advance({ seconds: 300 })
  await Promise.all(Array.from({ length: replicas }, () => cleanUp(service.deps)))
}

test('a clip whose job is lost is queued again only once, however many replicas notice, and is made', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await service.upload(picture(41), [], later))
  await loseJobs(service)
  await tidyUp(service, 3)
  expect(await jobsIn(service)).toEqual([{ name: TRANSCODE_QUEUE.name, state: 'created' }])
  await service.startWorker()
  await expect.poll(async () => (await detailsOf(service, id)).state).toBe('ready')
  await service.close()
})

test('a clip whose job is lost again and again fails in the end, with nothing left of its file', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await service.upload(picture(42), [], later))
  for (let round = 0; round < 3; round++) {
    await loseJobs(service)
    await tidyUp(service)
    expect(await jobsIn(service)).toHaveLength(1)
    expect((await detailsOf(service, id)).state).toBe('processing')
  }
  await loseJobs(service)
  await tidyUp(service)
  expect(await detailsOf(service, id)).toMatchObject({ state: 'failed', failure: { code: 'internal' } })
  // An owner without a token has the page alone.
  const page = await service.get(`/gif/${id}`)
  expect([page.status, page.text]).toEqual([404, expect.stringContaining('could not be processed')])
  expect(page.text).toContain('href="https://media.example/docs/errors#internal"')
  expect(await jobsIn(service)).toEqual([])
  expect(await service.listFiles()).toEqual([])
  await service.close()
})

test('a clip is left to its job while that waits, runs, waits for a retry or is in the dead-letter queue', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const id = idIn(await service.upload(picture(43), [], later))
  for (const [name, state] of [
    [TRANSCODE_QUEUE.name, 'created'],
    [TRANSCODE_QUEUE.name, 'active'],
    [TRANSCODE_QUEUE.name, 'retry'],
    [DEAD_TRANSCODE_QUEUE, 'created'],
  ]) {
    await service.deps.pool.query('update media_queue.job set name = $1, state = $2', [name, state])
    await tidyUp(service)
    expect(await jobsIn(service)).toEqual([{ name, state }])
  }
  expect((await detailsOf(service, id)).state).toBe('processing')
  await service.close()
})
