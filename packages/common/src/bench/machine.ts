import { execFile } from 'node:child_process'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { promisify } from 'node:util'

/** What a result is worth depends on it. */
export interface Machine {
  date: string
  /** With `+` when files differed from it. */
  commit: string
  cores: number
  processor: string
  memoryGib: number
  /** Of processes that wanted to run when the benchmark began: above 0.5 somebody else was at work. */
  loadBefore: number
  node: string
  postgres?: string
}

const run = promisify(execFile)

export async function describeMachine(): Promise<Machine> {
  return {
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    cores: availableParallelism(),
    processor: cpus()[0]?.model ?? 'unknown',
    memoryGib: Math.round(totalmem() / 1024 ** 3),
    loadBefore: Number(loadavg()[0]?.toFixed(2)),
    node: process.version,
    commit: await commit().catch(() => 'unknown'),
  }
}

async function commit(): Promise<string> {
  const { stdout: id } = await run('git', ['rev-parse', '--short', 'HEAD'])
  // Results of the run before are no difference.
  const { stdout: changes } = await run('git', [
    'status',
    '--porcelain',
    '--',
    ':/',
    ':(top,exclude)services/*/bench/results',
  ])
  return id.trim() + (changes ? '+' : '')
}
