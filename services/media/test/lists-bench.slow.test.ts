import { runListsBench } from '@services/common/testing/run/lists-bench'
import { expect, test } from 'vitest'

test('the benchmark of the lists loads its rows and gets the right rows and totals from every list', async () => {
  const { rows, figures, shortenedBy } = await runListsBench(new URL('..', import.meta.url))
  expect(shortenedBy).toEqual({ BENCH_ROWS: '1000', BENCH_REQUESTS: '1' })
  expect(figures.rows?.value).toBe(1_000)
  const lists = [
    'all',
    'owner',
    'tag-rare',
    'failed',
    'nsfw',
    'owner-private',
    'tags',
    'bulk-delete',
    'owner-title-asc',
    'all-q-half',
    'token-q-few-bytes',
    'clip',
    'page',
    'embed',
    'oembed',
    'tokens',
    'deliveries',
  ]
  expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining(lists))
  expect(rows.every(({ ours }) => ours > 0)).toBe(true)
})
