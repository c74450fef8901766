import { expect, test } from 'vitest'
import { createKeyedMutex } from './keyed-mutex.ts'

test('work of one key runs one at a time, even after a failure; other keys do not wait', async () => {
  const mutex = createKeyedMutex()
  const log: string[] = []
  const gate = Promise.withResolvers<void>()
  const first = mutex.run('a', async () => {
    await gate.promise
    log.push('a1')
    throw new Error('failed')
  })
  const second = mutex.run('a', async () => log.push('a2'))
  await mutex.run('b', async () => log.push('b'))
  gate.resolve()
  await expect(first).rejects.toThrow('failed')
  await second
  expect(log).toEqual(['b', 'a1', 'a2'])
})

test('a full queue of a key refuses work until it is shorter', async () => {
  const mutex = createKeyedMutex({ maxWaiting: 1, refuse: () => new Error('too long') })
  const gate = Promise.withResolvers<void>()
  const runs = [mutex.run('a', () => gate.promise), mutex.run('a', async () => {})]
  await expect(mutex.run('a', async () => {})).rejects.toThrow('too long')
  gate.resolve()
  await Promise.all(runs)
  expect(await mutex.run('a', async () => 'taken')).toBe('taken')
})

test('a turn that was taken lasts until it is ended, and a full queue refuses one', async () => {
  const mutex = createKeyedMutex({ maxWaiting: 1, refuse: () => new Error('too long') })
  const end = await mutex.take('a')
  const log: string[] = []
  const next = mutex.run('a', async () => log.push('next'))
  await expect(mutex.take('a')).rejects.toThrow('too long')
  log.push('ended')
  end()
  await next
  expect(log).toEqual(['ended', 'next'])
})
