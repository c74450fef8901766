import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import type { BenchResults } from '../../packages/common/src/bench/results.ts'

export const SHEET = new URL('../SCALING.md', import.meta.url)

/** Reads the latest benchmark results of the existing services. */
export async function readResults(): Promise<Record<string, BenchResults>> {
  const results: Record<string, BenchResults> = {}
  for (const service of ['auth', 'media']) {
    const file = new URL(`../../services/${service}/bench/results/latest.json`, import.meta.url)
    if (existsSync(file)) results[service] = JSON.parse(await readFile(file, 'utf8'))
  }
  return results
}
