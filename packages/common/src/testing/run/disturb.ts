// Disturbs a test worker: sockets, timers and started programs are late by 0 to 50 ms, drawn from TEST_SHAKEN. Only
// `test:shaken` (shaken.ts) names it as a setup file. A test is red under it only if its result depends on the order of
// events.
import { ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { accessSync, constants } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { Socket } from 'node:net'
import { delimiter, resolve } from 'node:path'
import timers from 'node:timers'
import timersPromises from 'node:timers/promises'
import { promisify } from 'node:util'
import { expect } from 'vitest'
import { seededRandom } from '../seeded-random.ts'

const LONGEST_DELAY_MS = 50

/**
 * Fraction of delayed events. If all were late, they would keep their order more often, and a run would take an hour.
 */
const DELAYED = 0.25

const setRealTimeout = timers.setTimeout

/** The worker's delays. Files share a worker, whose disturbance is installed once and seeded anew by each file. */
interface Disturbance {
  nextMs(): number
}
const KEY = Symbol.for('services.disturbance')
const worker = globalThis as { [KEY]?: Disturbance }

export function seedDisturbance(seed: string): Disturbance {
  const next = seededRandom(createHash('sha256').update(seed).digest().readInt32LE())
  return { nextMs: () => (next() < DELAYED ? Math.ceil(next() * LONGEST_DELAY_MS) : 0) }
}

/** Delays everything that the process does from here on; `disturbance` is read anew each time. */
function disturb(disturbance: () => Disturbance) {
  const nextMs = () => disturbance().nextMs()
  delayWrites(nextMs)
  delayTimers(nextMs)
  delayPrograms(nextMs)
  syncBuiltinESMExports()
}

type Write = (this: Socket, ...args: unknown[]) => void

/** Delays requests, answers and statements: PostgreSQL receives statements of several connections in another order. */
function delayWrites(nextMs: () => number) {
  const prototype = Socket.prototype as unknown as Record<'_write' | '_writev' | '_destroy', Write>
  const delayed = new WeakMap<Socket, () => void>()
  const late = (write: Write): Write =>
    function (...args) {
      const ms = nextMs()
      if (ms === 0) return write.apply(this, args)
      const send = () => {
        clearTimeout(timer)
        delayed.delete(this)
        write.apply(this, args)
      }
      const timer = setRealTimeout(send, ms)
      delayed.set(this, send)
    }
  prototype._write = late(prototype._write)
  prototype._writev = late(prototype._writev)
  const destroy = prototype._destroy
  // Without the delay the kernel would have had the bytes before the socket closed.
  prototype._destroy = function (...args) {
    delayed.get(this)?.()
    destroy.apply(this, args)
  }
}

type Timer = (handler: () => void, ms?: number, ...args: unknown[]) => unknown

function delayTimers(nextMs: () => number) {
  const late =
    <Set extends Timer>(set: Set) =>
    (handler: () => void, ms = 0, ...args: unknown[]) =>
      set(handler, ms + nextMs(), ...args)
  const { setTimeout, setInterval } = timers
  const wait = timersPromises.setTimeout
  const lateWait = (ms = 0, ...args: never[]) => wait(ms + nextMs(), ...args)
  const lateTimers = {
    setTimeout: Object.assign(late(setTimeout), { [promisify.custom]: lateWait }),
    setInterval: late(setInterval),
  }
  Object.assign(timers, lateTimers)
  Object.assign(globalThis, lateTimers)
  Object.assign(timersPromises, { setTimeout: lateWait })
}

interface SpawnOptions {
  file: string
  args?: string[]
  cwd?: string | URL
  envPairs?: string[]
}

/**
 * Starts a shell that waits and then becomes the program, so that process id, signals and streams stay the program's.
 */
function delayPrograms(nextMs: () => number) {
  if (process.platform === 'win32') return
  const prototype = ChildProcess.prototype as unknown as { spawn(options: SpawnOptions): unknown }
  const { spawn } = prototype
  prototype.spawn = function (options) {
    const ms = nextMs()
    // The failure to start a missing program is an event of its own.
    if (ms === 0 || !options.args || !isExecutable(options)) return spawn.call(this, options)
    const wait = `sleep ${ms / 1000}; exec "$0" "$@"`
    return spawn.call(this, {
      ...options,
      file: '/bin/sh',
      args: ['sh', '-c', wait, options.file, ...options.args.slice(1)],
    })
  }
}

function isExecutable({ file, cwd, envPairs = [] }: SpawnOptions): boolean {
  const path = envPairs.find((pair) => pair.startsWith('PATH='))?.slice('PATH='.length) ?? ''
  const paths = file.includes('/')
    ? [resolve(cwd ? String(cwd) : '', file)]
    : path.split(delimiter).map((each) => resolve(each, file))
  return paths.some((each) => {
    try {
      accessSync(each, constants.X_OK)
      return true
    } catch {
      return false
    }
  })
}

const { testPath } = expect.getState()
if (process.env.TEST_SHAKEN && testPath) {
  const isInstalled = worker[KEY] !== undefined
  worker[KEY] = seedDisturbance(`${process.env.TEST_SHAKEN} ${testPath.slice(process.cwd().length)}`)
  if (!isInstalled) disturb(() => worker[KEY] as Disturbance)
}
