import { runListsBench } from '@services/common/testing/run/lists-bench'
import { expect, test } from 'vitest'

test('the benchmark of the lists loads its rows and gets the right rows and totals from every list', async () => {
  const { rows, figures, shortenedBy } = await runListsBench(new URL('..', import.meta.url))
  expect(shortenedBy).toEqual({ BENCH_ROWS: '1000', BENCH_REQUESTS: '1' })
  const loaded = ['users', 'sessions', 'audit_log_entries', 'messages'].map((table) => figures[`rows-${table}`]?.value)
  expect(loaded).toEqual([1_000, 2_000, 10_000, 1_000])
  const lists = [
    'users',
    'users-filter',
    'users-cursor',
    'audit',
    'audit-author',
    'audit-action',
    'audit-type',
    'messages',
    'console',
  ]
  for (const list of lists) expect(rows.map(({ id }) => id)).toContainEqual(expect.stringMatching(`^${list}-`))
  expect(rows.every(({ ours }) => ours > 0)).toBe(true)
})
