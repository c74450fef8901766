import { expect } from 'vitest'
import { setProgress } from '../src/clips/sources.store.ts'
import { gif } from './gif-bytes.ts'
import { startTestService, test } from './service.ts'

test('the progress of a clip is heard in every process, rising, until it is decided', async () => {
  const service = await startTestService({ MEDIA_WORKERS_ENABLED: 'false' })
  const { db, pool, results, resultsChannel: channel } = service.deps
  await service.upload(gif(30, 20, [{ delay: 10 }]), [], { prefer: 'respond-async' })
  const { rows } = await pool.query('select id from sources')
  const id = rows[0].id as string
  const heard: number[] = []
  const stop = results.follow(id, (progress) => heard.push(progress))
  const other = results.follow(id, () => {})
  // The connection that hears it may still be opening.
  let first = 0
  await expect
    .poll(async () => {
      first += 0.001
      await setProgress(db, { id, progress: first, channel })
      return heard.length
    })
    .toBeGreaterThan(0)
  await expect.poll(() => heard.at(-1)).toBeCloseTo(first, 5)
  heard.length = 0
  for (const progress of [0.25, 0.1, 0.5]) await setProgress(db, { id, progress, channel })
  await expect.poll(() => heard).toEqual([0.25, 0.5])
  other()
  stop()
  await setProgress(db, { id, progress: 0.75, channel })

  await service.startWorker()
  expect(await results.wait(id, AbortSignal.timeout(8_000))).toEqual({ state: 'ready' })
  results.follow(id, (progress) => heard.push(progress))
  await setProgress(db, { id, progress: 0.9, channel })
  expect(heard).toEqual([0.25, 0.5])
  await service.close()
})
