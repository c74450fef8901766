import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createTestClock } from '../testing/clock.ts'
import { type Kinds, type Runs, runRound, startRounds } from './rounds.ts'

const log = pino({ level: 'silent' })

/** Kinds with so many steps, and the order in which their steps ran. */
function steps(numbers: Record<string, number>, everyMs?: number) {
  const ran: string[] = []
  const kinds: Kinds = {}
  for (const [name, number] of Object.entries(numbers)) {
    kinds[name] = {
      ...(everyMs && { everyMs }),
      async *begin() {
        for (let step = 1; step <= number; step++) {
          ran.push(`${name}${step}`)
          if (step < number) yield
        }
      },
    }
  }
  return { ran, kinds }
}

const roundOf = (clock = createTestClock()) => {
  const runs: Runs = {}
  return (kinds: Kinds, stopping?: AbortSignal) =>
    runRound(kinds, { log, now: clock.now, everyMs: 600_000, runs, stopping })
}

test('a round does all work of all kinds, a step of each in turn', async () => {
  const { ran, kinds } = steps({ a: 3, b: 1, c: 2 })
  const round = roundOf()
  await round(kinds)
  expect(ran).toEqual(['a1', 'b1', 'c1', 'a2', 'c2', 'a3'])
  await round(kinds)
  expect(ran).toHaveLength(12)
})

test('a kind whose step fails leaves the others alone, and begins anew in the next round', async () => {
  const { ran, kinds } = steps({ a: 2, b: 2 })
  let fails = true
  const round = roundOf()
  const failing: Kinds = {
    bad: {
      async *begin() {
        ran.push('bad')
        yield
        if (fails) throw new Error('no')
        ran.push('good')
      },
    },
  }
  await round({ ...failing, ...kinds })
  expect(ran).toEqual(['bad', 'a1', 'b1', 'a2', 'b2'])
  fails = false
  ran.length = 0
  await round(failing)
  expect(ran).toEqual(['bad', 'good'])
})

test('a stopped round ends after its step, and the next one continues there', async () => {
  const { ran, kinds } = steps({ a: 3, b: 2 })
  const stopping = new AbortController()
  const round = roundOf()
  await round(
    {
      ...kinds,
      stop: {
        begin: async function* () {
          yield stopping.abort()
        },
      },
    },
    stopping.signal,
  )
  expect(ran).toEqual(['a1', 'b1'])
  await round(kinds)
  expect(ran).toEqual(['a1', 'b1', 'a2', 'b2', 'a3'])
})

test('a kind with an interval rests between its runs; a kind without one runs again while a long round lasts', async () => {
  const clock = createTestClock()
  const round = roundOf(clock)
  const { ran, kinds } = steps({ daily: 1 }, 86_400_000)
  const often = steps({ often: 1 })
  const long: Kinds = {
    long: {
      async *begin() {
        for (let step = 0; step < 3; step++) {
          clock.advance({ seconds: 601 })
          yield
        }
      },
    },
  }
  await round({ ...kinds, ...often.kinds, ...long })
  expect([ran, often.ran]).toEqual([['daily1'], ['often1', 'often1', 'often1', 'often1']])
  clock.advance({ seconds: 86_400 })
  await round(kinds)
  expect(ran).toEqual(['daily1', 'daily1'])
})

test('a run gets what the last complete run has returned', async () => {
  const got: unknown[] = []
  const round = roundOf()
  const counting: Kinds = {
    counting: {
      async *begin(from: number | undefined) {
        got.push(from)
        yield
        return (from ?? 0) + 1
      },
    },
  }
  for (let i = 0; i < 3; i++) await round(counting)
  expect(got).toEqual([undefined, 1, 2])
})

test('rounds follow each other, never two at once; a stop waits for the step in hand', async () => {
  const begun: (() => void)[] = []
  let atOnce = 0
  let most = 0
  const second = Promise.withResolvers<void>()
  const stop = startRounds(
    async () => {
      most = Math.max(most, ++atOnce)
      await new Promise<void>((resolve) => {
        begun.push(resolve)
        if (begun.length === 2) second.resolve()
      })
      atOnce--
    },
    { log, firstMs: 1, everyMs: 1 },
  )
  await expect.poll(() => begun.length).toBe(1)
  begun[0]?.()
  await second.promise
  let isStopped = false
  const stopped = stop().then(() => {
    isStopped = true
  })
  await new Promise(setImmediate)
  expect(isStopped).toBe(false)
  begun[1]?.()
  await stopped
  expect([begun.length, most]).toEqual([2, 1])
})
