import { AsyncLocalStorage } from 'node:async_hooks'
import { expect, test } from 'vitest'
import { batchLoads } from './batch-loads.ts'

/** Doubles numbers except `refuse`, and records its calls. */
function doubling(max: number, refuse: (keys: readonly number[]) => boolean = () => false) {
  const calls: (readonly number[])[] = []
  const double = batchLoads(async (keys: readonly number[]) => {
    calls.push(keys)
    if (refuse(keys)) throw new Error(`refused ${keys}`)
    return keys.map((key) => 2 * key)
  }, max)
  return { double, calls }
}

test('keys requested in one turn are loaded by one call', async () => {
  const { double, calls } = doubling(10)
  expect(await Promise.all([double(3), double(1), double(3)])).toEqual([6, 2, 6])
  expect(await double(4)).toBe(8)
  expect(calls).toEqual([[3, 1, 3], [4]])
})

test('a batch holds no more keys than its limit', async () => {
  const { double, calls } = doubling(2)
  expect(await Promise.all([1, 2, 3, 4, 5].map(double))).toEqual([2, 4, 6, 8, 10])
  expect(calls).toEqual([[1, 2], [3, 4], [5]])
})

test('no request fails for the key of another', async () => {
  const { double, calls } = doubling(10, (keys) => keys.includes(13))
  const results = await Promise.allSettled([1, 13, 2].map(double))
  expect(results.map((result) => (result.status === 'fulfilled' ? result.value : String(result.reason)))).toEqual([
    2,
    'Error: refused 13',
    4,
  ])
  expect(calls).toEqual([[1, 13, 2], [1], [13], [2]])
})

test('a failed batch of one key is not repeated', async () => {
  const { double, calls } = doubling(10, () => true)
  await expect(double(1)).rejects.toThrow('refused 1')
  expect(calls).toEqual([[1]])
})

test('a repeated load runs in the context of its request', async () => {
  const asker = new AsyncLocalStorage<string>()
  const askers: unknown[] = []
  const name = batchLoads(async (keys: readonly string[]) => {
    askers.push(asker.getStore())
    if (keys.length > 1) throw new Error('the first one has gone')
    return keys
  }, 10)
  await Promise.all(['first', 'second'].map((key) => asker.run(key, () => name(key))))
  expect(askers).toEqual(['first', 'first', 'second'])
})
