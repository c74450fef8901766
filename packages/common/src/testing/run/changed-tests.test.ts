import { expect, test } from 'vitest'
import { batchOf, changedTests } from './changed-tests.ts'

const log =
  '\0\nsrc/new.test.ts\nsrc/new.ts\n\0\nsrc/a.slow.test.ts\nsrc/old.test.ts\nsrc/gone.test.ts\n\0\nsrc/new.test.ts\n'
const changed =
  'src/old.test.ts\nsrc/new.test.ts\nsrc/new.ts\nsrc/a.slow.test.ts\ndocs/guide.test.ts\nsrc/faults/x.test.ts'

test('changed test files are repeated newest first, and those of the slow tier last', () => {
  expect(changedTests(log, changed)).toEqual([
    { path: 'src/new.test.ts', isSlow: false },
    { path: 'src/old.test.ts', isSlow: false },
    { path: 'src/a.slow.test.ts', isSlow: true },
  ])
})

test('files whose change was undone, guides and fault tests are not repeated', () => {
  const paths = changedTests(`${log}\0\ndocs/guide.test.ts\nsrc/faults/x.test.ts\n`, changed).map(({ path }) => path)
  expect(paths).toEqual(['src/new.test.ts', 'src/old.test.ts', 'src/a.slow.test.ts'])
})

test('a batch has files of one tier and at most three', () => {
  const fast = Array.from({ length: 7 }, (_, n) => ({ path: `${n}.test.ts`, isSlow: false }))
  expect(batchOf(fast)).toEqual(fast.slice(0, 3))
  const slow = { path: 'a.slow.test.ts', isSlow: true }
  expect(batchOf([...fast.slice(0, 2), slow])).toEqual(fast.slice(0, 2))
  expect(batchOf([slow])).toEqual([slow])
  expect(batchOf([])).toEqual([])
})
