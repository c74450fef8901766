import { expect, test } from 'vitest'
import { chooseThreads } from './choose-threads.ts'

test.each([
  ['alone on the machine', { running: 1, waiting: 0 }, 4],
  ['alone on the machine, of four processes', { running: 1, waiting: 0, claimed: 1, processes: 4, concurrency: 1 }, 4],
  ['a second one beside it', { running: 2, waiting: 0 }, 2],
  ['the first of many', { running: 1, waiting: 11 }, 1],
  ['beside busy machines', { running: 1, waiting: 0, claimed: 9 }, 4],
  ['more waiting than slots', { running: 2, waiting: 100, concurrency: 2 }, 2],
  ['four processes with one each', { running: 1, waiting: 0, processes: 4, concurrency: 1 }, 1],
  ['two processes, one slot each', { running: 1, waiting: 5, processes: 2, concurrency: 1 }, 2],
  ['more slots than cores', { running: 9, waiting: 0, concurrency: 16 }, 1],
])('%s', (_, load, threads) => {
  expect(chooseThreads({ cores: 4, processes: 1, concurrency: 4, claimed: 20, ...load })).toBe(threads)
})
