import { type Attributes, type MetricOptions, metrics } from '@opentelemetry/api'
import { ApiError } from '../errors.ts'

/** Creates an instrument at its first use: one created before the SDK starts never reports. */
function lazily<Instrument>(create: () => Instrument): () => Instrument {
  let created: Instrument | undefined
  return () => {
    created ??= create()
    return created
  }
}

export function counter(name: string, how: MetricOptions): (attributes: Attributes, by?: number) => void {
  const get = lazily(() => meterOf(name).createCounter(name, how))
  return (attributes, by = 1) => get().add(by, attributes)
}

/** Histogram with its own bucket boundaries; the SDK's are for milliseconds. */
export function histogram(
  name: string,
  { boundaries, ...how }: MetricOptions & { boundaries: number[] },
): (value: number, attributes: Attributes) => void {
  const advice = { explicitBucketBoundaries: boundaries }
  const get = lazily(() => meterOf(name).createHistogram(name, { ...how, advice }))
  return (value, attributes) => get().record(value, attributes)
}

/** `auth.sign_ins` belongs to the meter `auth`. */
const meterOf = (name: string) => metrics.getMeter(name.slice(0, name.indexOf('.')))

/** Result attribute of a failure: its code, of which there are finitely many. */
export const resultOf = (error: unknown): string => (error instanceof ApiError ? error.code : 'unexpected_failure')

/** Runs `work` and counts its result: `ok` or the failure's code. */
export async function counted<Result>(count: (result: string) => void, work: () => Promise<Result>): Promise<Result> {
  try {
    const result = await work()
    count('ok')
    return result
  } catch (error) {
    count(resultOf(error))
    throw error
  }
}
