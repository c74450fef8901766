import { expect, test } from 'vitest'
import { askedInTime } from './process-metrics.ts'

test('a question that never answers is asked once and delays no export', async () => {
  let asked = 0
  const ask = askedInTime(() => {
    asked++
    return new Promise<number>(() => {})
  }, 10)
  expect([await ask(), await ask()]).toEqual([undefined, undefined])
  expect(asked).toBe(1)
})

test('a failure is undefined and asked again; an answer is passed on', async () => {
  const answers = [() => Promise.reject(new Error('away')), () => Promise.resolve(7)]
  const ask = askedInTime(() => (answers.shift() ?? (() => Promise.resolve(0)))(), 60_000)
  expect([await ask(), await ask()]).toEqual([undefined, 7])
})
