// `test:burn-in`: runs the test files that a change touches ten times, for at most two minutes. Five runs are shaken
// (fast tier) or beside busy loops (slow tier). A test that is red by chance is found by the change that brings it.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { startBusyLoops } from './busy-loops.ts'
import { batchOf, changedTests, type TestFile } from './changed-tests.ts'
import { FAST_TIER, SLOW_TIER } from './tiers.ts'

const RUNS = 10
/** The whole of .ci/run ends within 25 minutes, and both tiers take most of them. */
const MAX_MS = 2 * 60_000

const git = (...args: string[]) =>
  execFileSync('git', args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim()
const head = git('rev-parse', 'HEAD')
const base = findBase()
if (!base) leave('burn-in: no earlier commit in this clone, so nothing is known of the change', 0)
const waiting = changedTests(
  git('log', '--format=%x00', '--name-only', `${base}..HEAD`),
  git('diff', '--name-only', '--diff-filter=d', base),
).filter(({ path }) => existsSync(path))
print(`${waiting.length} test files changed since ${git('log', '-1', '--format=%h of %cs', base)}`)

const startedAt = performance.now()
let repeated = 0
for (let batch = batchOf(waiting); batch.length > 0; batch = batchOf(waiting)) {
  const batchStartedAt = performance.now()
  const runs = await burnIn(batch)
  print(`  ${runs} times in ${secondsSince(batchStartedAt)} s: ${batch.map(({ path }) => path).join(' ')}`)
  if (runs > 0) repeated += waiting.splice(0, batch.length).length
  if (runs < RUNS) break
}
print(`${repeated} files repeated in ${secondsSince(startedAt)} s; no time for ${waiting.length} older or slower ones`)

/**
 * Runs the files until all runs are done or the time is up. Returns the number of green runs; a red one ends the
 * process.
 */
async function burnIn(batch: readonly TestFile[]): Promise<number> {
  let longestMs = 0
  for (let run = 0; run < RUNS; run++) {
    const runStartedAt = performance.now()
    if (runStartedAt + longestMs - startedAt > MAX_MS) return run
    await runTests(batch, run)
    longestMs = Math.max(longestMs, performance.now() - runStartedAt)
  }
  return RUNS
}

async function runTests(batch: readonly TestFile[], run: number): Promise<void> {
  const isLoaded = run % 2 === 1
  const isSlow = batch.some((file) => file.isSlow)
  // The same commit is shaken by the same seeds.
  const seed = String((Number.parseInt(head.slice(0, 6), 16) + run) % 1_000_000)
  const args = ['node_modules/vitest/vitest.mjs', 'run', ...(isSlow ? SLOW_TIER : FAST_TIER)]
  const endLoops = isLoaded ? startBusyLoops() : () => {}
  const child = spawn(process.execPath, [...args, ...batch.map(({ path }) => path)], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, ...(isLoaded && !isSlow && { TEST_SHAKEN: seed }) },
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk))
  const [code] = await once(child, 'close')
  endLoops()
  if (code !== 0) leave(`${output}\nburn-in: run ${run + 1} of ${RUNS} is red${isLoaded ? `, seed ${seed}` : ''}`, 1)
}

/**
 * Finds the last commit before the change: BURN_IN_BASE, else where this branch left origin/main. On main itself it is
 * the newest commit four hours older than HEAD, because commits of one change are pushed together.
 */
function findBase(): string | undefined {
  const given = process.env.BURN_IN_BASE
  if (given && isCommit(given)) return given
  const fork = isCommit('origin/main') ? git('merge-base', 'origin/main', 'HEAD') : head
  if (fork !== head) return fork
  const before = Number(git('log', '-1', '--format=%ct')) - 4 * 3600
  return git('rev-list', '-1', `--before=${before}`, 'HEAD') || undefined
}

function isCommit(name: string): boolean {
  try {
    git('rev-parse', '--verify', '--quiet', `${name}^{commit}`)
    return true
  } catch {
    return false
  }
}

function secondsSince(startedMs: number): number {
  return Math.round((performance.now() - startedMs) / 1000)
}

function print(line: string) {
  process.stdout.write(`${line}\n`)
}

function leave(because: string, code: number): never {
  print(because)
  process.exit(code)
}
