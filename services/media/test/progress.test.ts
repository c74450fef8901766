import { expect } from 'vitest'
import { setProgress } from '../src/core/sources/sources.store.ts'
import { gif } from './gif-bytes.ts'
import { idIn, startTestService, test } from './service.ts'

test('the progress of a clip is reported, rising, until the clip is ready or failed', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { db, pool, sourceWaiters } = service.deps
  const id = idIn(await service.upload(gif(30, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' }))
  const { rows } = await pool.query('select id from sources')
  const told = async () => (await service.get(`/media/${id}`, { token: service.token })).body.success.progress
  const heard: number[] = []
  for (const progress of [0.25, 0.125, 0.5]) {
    await setProgress(db, rows[0].id, progress)
    heard.push(await told())
  }
  expect(heard).toEqual([0.25, 0.25, 0.5])

  await service.startWorker()
  expect(await sourceWaiters.wait(rows[0].id, new AbortController().signal)).toMatchObject({ state: 'ready' })
  await setProgress(db, rows[0].id, 0.75)
  expect(await told()).toBe(1)
  await service.close()
})
