import { type Context, context } from '@opentelemetry/api'
import { outsideTrace } from '../telemetry/spans.ts'

interface Request<Key, Result> {
  key: Key
  within: Context
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

/**
 * Batches the keys requested in one turn of the event loop into calls of `load`, each of at most `max` keys. Results
 * keep the order of the keys. Many rows cost a database little more than one. `load` runs in the context of the first
 * request and ends with its deadline. After a failed batch each key is loaded separately, so that no request fails
 * because of another: `load` must tolerate two calls. A batch of several requests belongs to no trace.
 */
export function batchLoads<Key, Result>(
  load: (keys: readonly Key[]) => Promise<readonly Result[]>,
  max: number,
): (key: Key) => Promise<Result> {
  let waiting: Request<Key, Result>[] = []

  const loadWaiting = async () => {
    const batch = waiting.slice(0, max)
    waiting = waiting.slice(max)
    if (waiting.length > 0) setImmediate(loadWaiting)
    try {
      const results = await inTraceOf(batch, () => load(batch.map(({ key }) => key)))
      for (const [index, { resolve }] of batch.entries()) resolve(results[index] as Result)
    } catch (error) {
      for (const { reject } of batch) reject(batch.length === 1 ? error : BATCH_FAILED)
    }
  }

  const request = (key: Key) =>
    new Promise<Result>((resolve, reject) => {
      waiting.push({ key, within: context.active(), resolve, reject })
      if (waiting.length === 1) setImmediate(loadWaiting)
    })

  return (key) =>
    request(key).catch(async (error) => {
      if (error !== BATCH_FAILED) throw error
      return (await load([key]))[0] as Result
    })
}

function inTraceOf<Result>(batch: readonly { within: Context }[], work: () => Result): Result {
  const [first, ...others] = batch
  return first && others.length === 0 ? context.with(first.within, work) : outsideTrace(work)
}

const BATCH_FAILED = Symbol('batch failed')
