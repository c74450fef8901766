import { expect, test } from 'vitest'
import { createSemaphore, type SemaphoreLimits } from './semaphore.ts'

const open = (limits: SemaphoreLimits) =>
  createSemaphore(limits, (isShare) => new Error(isShare ? 'its share is full' : 'busy'))

test('tasks beyond the limit wait in order, and those beyond the queue are refused', async () => {
  const semaphore = open({ atOnce: 2, waiting: 2, waitMs: 60_000 })
  const started: number[] = []
  const gates = Array.from({ length: 4 }, () => Promise.withResolvers<void>())
  const runs = gates.map((gate, n) =>
    semaphore.run(async () => {
      started.push(n)
      await gate.promise
      if (n === 0) throw new Error('its own failure')
      return n
    }),
  )
  await expect(semaphore.run(async () => 5)).rejects.toThrow('busy')
  expect(started).toEqual([0, 1])
  gates[0]?.resolve()
  await expect(runs[0]).rejects.toThrow('its own failure')
  expect(started).toEqual([0, 1, 2])
  for (const gate of gates) gate.resolve()
  expect(await Promise.all(runs.slice(1))).toEqual([1, 2, 3])
  expect(await semaphore.run(async () => 6)).toBe(6)
})

test('a key takes no more than its limits of slots and queue', async () => {
  const semaphore = open({ atOnce: 3, waiting: 4, waitMs: 60_000, perKey: { atOnce: 2, waiting: 1 } })
  const started: string[] = []
  const gate = Promise.withResolvers<void>()
  const run = (name: string, key: string) =>
    semaphore.run(
      async () => {
        started.push(name)
        await gate.promise
      },
      { key },
    )
  const runs = [run('a1', 'a'), run('a2', 'a'), run('a3', 'a')]
  await expect(run('a4', 'a')).rejects.toThrow('its share is full')
  expect(() => semaphore.refuseWhenFull('a')).toThrow()
  semaphore.refuseWhenFull('b')
  runs.push(run('b1', 'b'), run('b2', 'b'))
  expect(started).toEqual(['a1', 'a2', 'b1'])
  gate.resolve()
  await Promise.all(runs)
  expect(started).toEqual(['a1', 'a2', 'b1', 'a3', 'b2'])
})

test('a wait that times out or is aborted takes no slot', async () => {
  const semaphore = open({ atOnce: 1, waiting: 2, waitMs: 20 })
  const gate = Promise.withResolvers<void>()
  const first = semaphore.run(() => gate.promise)
  const leaving = new AbortController()
  const left = semaphore.run(async () => 'never', { signal: leaving.signal })
  leaving.abort(new Error('gone'))
  await expect(left).rejects.toThrow('gone')
  await expect(semaphore.run(async () => 'never', { signal: leaving.signal })).rejects.toThrow('gone')
  await expect(semaphore.run(async () => 'never')).rejects.toThrow('busy')
  gate.resolve()
  await first
  expect(await semaphore.run(async () => 'at once')).toBe('at once')
})

test('a wait without a limit ends only with a slot', async () => {
  const semaphore = open({ atOnce: 1, waiting: Infinity, waitMs: Infinity })
  const gate = Promise.withResolvers<void>()
  const runs = [semaphore.run(() => gate.promise), semaphore.run(async () => {})]
  expect(semaphore.taken()).toEqual({ used: 1, waiting: 1 })
  gate.resolve()
  await Promise.all(runs)
  expect(semaphore.taken()).toEqual({ used: 0, waiting: 0 })
})
