// Rounds of housekeeping. Kinds of work alternate step by step, so that none waits for a large one. Deleting rows:
// delete-in-batches.ts. Kinds: rounds.ts of each service.
import type { Logger } from 'pino'

interface Kind {
  /** Shortest time between two runs; without it every round runs the kind. */
  everyMs?: number
  /** Begins a run, which yields after each short step, with the result of the last complete one. */
  // biome-ignore lint/suspicious/noExplicitAny: each kind gets its own result back
  begin(from: any): AsyncGenerator<void, unknown>
}

/** Kinds of work by name. */
export type Kinds = Record<string, Kind>

/** State of each kind, kept from round to round. */
export type Runs = Record<string, Run>

interface Run {
  dueAt: number
  work?: ReturnType<Kind['begin']> | undefined
  from?: unknown
}

interface Round {
  log: Logger
  now: () => Date
  /** Interval of rounds. In a longer round, finished kinds run again after it. */
  everyMs: number
  runs: Runs
  stopping?: AbortSignal | undefined
}

/** Runs all kinds until none has work left. One that fails is logged and begins anew in the next round. */
export async function runRound(kinds: Kinds, { log, now, everyMs, runs, stopping }: Round): Promise<void> {
  for (const [what, kind] of Object.entries(kinds)) {
    const run = runs[what]
    if (!run) runs[what] = { dueAt: 0 }
    else if (!kind.everyMs) run.dueAt = 0
  }
  const inMs = (ms: number) => now().getTime() + ms
  for (let hasMore = true; hasMore; ) {
    hasMore = false
    for (const [what, kind] of Object.entries(kinds)) {
      const run = runs[what] as Run
      if (stopping?.aborted) return
      if (!run.work && inMs(0) < run.dueAt) continue
      try {
        run.work ??= kind.begin(run.from)
        const { done, value } = await run.work.next()
        if (done) Object.assign(run, { work: undefined, from: value, dueAt: inMs(kind.everyMs ?? everyMs) })
        else hasMore = true
      } catch (err) {
        Object.assign(run, { work: undefined, dueAt: inMs(everyMs) })
        log.warn({ err, what }, 'housekeeping failed: retrying in the next round')
      }
    }
  }
}

/**
 * Calls `round` after `firstMs`, then `everyMs` after each end. The returned function stops it and waits for the step
 * in hand.
 */
export function startRounds(
  round: (stopping: AbortSignal) => Promise<void>,
  { log, firstMs, everyMs }: { log: Logger; firstMs: number; everyMs: number },
): () => Promise<void> {
  const stopping = new AbortController()
  let running = Promise.resolve()
  let timer = setTimeout(begin, firstMs).unref()
  function begin() {
    running = round(stopping.signal)
      .catch((err) => log.warn({ err }, 'housekeeping failed, will retry'))
      .then(() => {
        if (!stopping.signal.aborted) timer = setTimeout(begin, everyMs).unref()
      })
  }
  return () => {
    stopping.abort()
    clearTimeout(timer)
    return running
  }
}
