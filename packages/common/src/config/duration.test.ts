import { expect, test } from 'vitest'
import { parseDurationSeconds } from './duration.ts'

test.for<[string, number | undefined]>([
  ['900', 900],
  ['1.5', 1.5],
  ['1h30m', 5400],
  ['1.5h', 5400],
  ['500ms', 0.5],
  ['2us', 2e-6],
  ['', undefined],
  ['-1s', undefined],
  ['1 h', undefined],
  ['1d', undefined],
  ['h', undefined],
])('%j is %s seconds', ([text, seconds]) => {
  expect(parseDurationSeconds(text)).toBe(seconds)
})
