import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import type { BenchResults } from '../../bench/results.ts'

/**
 * Runs the benchmark of a service's lists on a thousand rows. Rejects when an answer is wrong, with a sentence about
 * it.
 */
export async function runListsBench(service: URL): Promise<BenchResults> {
  const results = await mkdtemp(join(tmpdir(), 'lists-bench-'))
  try {
    const environment = { ...process.env, BENCH_ROWS: '1000', BENCH_REQUESTS: '1', BENCH_RESULTS: results }
    await promisify(execFile)(process.execPath, ['bench/lists.ts'], { cwd: service, env: environment })
    return JSON.parse(await readFile(join(results, 'scale-latest.json'), 'utf8'))
  } finally {
    await rm(results, { recursive: true })
  }
}
