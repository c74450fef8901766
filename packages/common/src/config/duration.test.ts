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
  ['7d', 604_800],
  ['2w', 1_209_600],
  ['1w2d3h', 788_400],
  ['1.5d', 129_600],
  ['1D', undefined],
  ['1M', undefined],
  ['1y', undefined],
  ['h', undefined],
])('%j is %s seconds', ([text, seconds]) => {
  expect(parseDurationSeconds(text)).toBe(seconds)
})
