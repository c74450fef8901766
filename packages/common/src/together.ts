import { type Context, context } from '@opentelemetry/api'
import { outsideTrace } from './tracing.ts'

interface Asker<Key, Result> {
  key: Key
  /** Holds the trace of the request that asks. */
  within: Context
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Has what is asked for in one turn of the event loop loaded by one call of `load`, of at most `most` keys, whose results come
 * in the order of the keys: many rows cost a database little more than one. Who asks alone waits for nobody.
 *
 * `load` runs for the request that asked first, and ends with it. Nobody fails for somebody else's key or end: what was asked
 * for together and failed is asked for again one by one. So `load` must bear being called twice. A call for several requests is in
 * the trace of none.
 */
export function together<Key, Result>(
  load: (keys: readonly Key[]) => Promise<readonly Result[]>,
  most: number,
): (key: Key) => Promise<Result> {
  let waiting: Asker<Key, Result>[] = []

  const loadWaiting = async () => {
    const askers = waiting.slice(0, most)
    waiting = waiting.slice(most)
    if (waiting.length > 0) setImmediate(loadWaiting)
    try {
      const results = await inTraceOf(askers, () => load(askers.map(({ key }) => key)))
      for (const [index, { resolve }] of askers.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of askers) reject(askers.length === 1 ? error : FAILED_TOGETHER)
    }
  }

  const ask = (key: Key) =>
    new Promise<Result>((resolve, reject) => {
      waiting.push({ key, within: context.active(), resolve, reject })
      if (waiting.length === 1) setImmediate(loadWaiting)
    })

  return (key) =>
    ask(key).catch(async (error) => {
      if (error !== FAILED_TOGETHER) throw error
      return (await load([key]))[0] as Result
    })
}

function inTraceOf<Result>(askers: readonly { within: Context }[], work: () => Result): Result {
  const [first, ...others] = askers
  return first && others.length === 0 ? context.with(first.within, work) : outsideTrace(work)
}

const FAILED_TOGETHER = Symbol('failed together')
