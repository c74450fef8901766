import { expect, test } from 'vitest'
import { seedDisturbance } from './disturb.ts'

const delaysOf = (seed: string) => {
  const { nextMs } = seedDisturbance(seed)
  return Array.from({ length: 1_000 }, nextMs)
}

test('a seed gives the same delays again, and another one gives others', () => {
  expect(delaysOf('1 /a.test.ts')).toEqual(delaysOf('1 /a.test.ts'))
  expect(delaysOf('1 /a.test.ts')).not.toEqual(delaysOf('2 /a.test.ts'))
  expect(delaysOf('1 /a.test.ts')).not.toEqual(delaysOf('1 /b.test.ts'))
})

test('some events are delayed, by at most 50 ms, and most are not', () => {
  const delays = delaysOf('3 /a.test.ts')
  expect(Math.max(...delays)).toBe(50)
  expect(Math.min(...delays)).toBe(0)
  expect(delays.filter((ms) => ms === 0).length).toBeGreaterThan(700)
  expect(new Set(delays).size).toBe(51)
})
