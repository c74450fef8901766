import { execFile } from 'node:child_process'
import { availableParallelism, cpus, loadavg, totalmem } from 'node:os'
import { promisify } from 'node:util'

export interface Machine {
  date: string
  /** Short id, with `+` for uncommitted changes. */
  commit: string
  cores: number
  processor: string
  memoryGib: number
  /** Load average at the start; above 0.5 other programs took part of the machine. */
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
  // Results of an earlier run are no change.
  const changed = ['status', '--porcelain', '--', ':/', ':(top,exclude)services/*/bench/results']
  const { stdout: changes } = await run('git', changed)
  return id.trim() + (changes ? '+' : '')
}
