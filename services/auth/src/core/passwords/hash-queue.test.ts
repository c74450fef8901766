import { expect, test } from 'vitest'
import { createHashQueue } from './hash-queue.ts'

test('who has waited too long is refused without the work, and those behind still get their turn', async () => {
  let time = 0
  const queue = createHashQueue({ concurrency: 1, maxWaiting: 10, longestWaitMs: 5_000, now: () => time })
  let finishFirst = () => {}
  const begun: string[] = []
  const first = queue.run(() => new Promise<void>((resolve) => (finishFirst = resolve)))
  const late = queue.run(async () => begun.push('late'))
  time = 3_000
  const inTime = queue.run(async () => begun.push('in time'))
  time = 5_001
  finishFirst()
  await first
  await expect(late).rejects.toMatchObject({ code: 'over_capacity', retryAfterSeconds: 2 })
  await inTime
  await queue.run(async () => begun.push('afterwards'))
  expect([begun, queue.waiting()]).toEqual([['in time', 'afterwards'], 0])
})
