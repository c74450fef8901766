import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { BenchResults } from '@services/common/bench/results'
import { expect, test } from 'vitest'

test('the benchmark of the lists loads its rows and gets the right rows and totals from every list', async () => {
  const results = await mkdtemp(join(tmpdir(), 'lists-bench-'))
  try {
    const environment = { ...process.env, BENCH_ROWS: '1000', BENCH_REQUESTS: '1', BENCH_RESULTS: results }
    // A wrong answer of any list ends it with a code other than 0 and a sentence.
    await promisify(execFile)(process.execPath, ['bench/lists.ts'], {
      cwd: new URL('..', import.meta.url),
      env: environment,
    })
    const { rows, figures, shortenedBy } = JSON.parse(
      await readFile(join(results, 'scale-latest.json'), 'utf8'),
    ) as BenchResults
    expect(shortenedBy).toEqual({ BENCH_ROWS: '1000', BENCH_REQUESTS: '1' })
    expect(figures.rows?.value).toBe(1_000)
    const lists = [
      'all',
      'owner',
      'tag-rare',
      'failed',
      'nsfw',
      'clip',
      'page',
      'embed',
      'oembed',
      'tokens',
      'deliveries',
    ]
    expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining(lists))
    expect(rows.every(({ ours }) => ours > 0)).toBe(true)
  } finally {
    await rm(results, { recursive: true })
  }
})
