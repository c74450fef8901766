// `test:shaken [SEED] [options and files of vitest]`: runs the fast tier in the order of test-order.ts and under the
// delays of disturb.ts, on one core beside four busy loops. A seed repeats order and delays; without one it draws and
// prints its own.
import { spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { ON_ONE_CORE, startBusyLoops } from './busy-loops.ts'
import { FAST_TIER } from './tiers.ts'

const [first = '', ...others] = process.argv.slice(2)
const isSeed = /^\d+$/.test(first)
const seed = isSeed ? first : String(randomInt(1_000_000))
const given = isSeed || first === '' ? others : [first, ...others]
const projects = given.some((each) => each.startsWith('--project')) ? [] : FAST_TIER

process.stdout.write(`test:shaken ${seed}${ON_ONE_CORE.length === 0 ? ', not on one core: taskset is missing' : ''}\n`)
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => process.exit(1))
startBusyLoops(ON_ONE_CORE)
const vitest = ['node_modules/vitest/vitest.mjs', 'run']
const [program = '', ...args] = [...ON_ONE_CORE, process.execPath, ...vitest, ...projects, ...given]
const run = spawn(program, args, { stdio: 'inherit', env: { ...process.env, TEST_SHAKEN: seed } })
process.once('exit', () => run.kill())
const [code] = await once(run, 'exit')
process.exit(code ?? 1)
