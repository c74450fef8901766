import { type Attributes, metrics } from '@opentelemetry/api'
import { ApiError } from './errors.ts'

interface Description {
  description: string
  unit: string
}

/** Counts under the meter of a service, one or as many as said. Made with the first count: what is made before the SDK has started counts into the void for good. */
export function counter(name: string, how: Description): (attributes: Attributes, by?: number) => void {
  let made: ReturnType<ReturnType<typeof metrics.getMeter>['createCounter']> | undefined
  return (attributes, by = 1) => {
    made ??= meterOf(name).createCounter(name, how)
    made.add(by, attributes)
  }
}

/** Its buckets end at `boundaries`: those of the SDK are made for milliseconds. */
export function histogram(
  name: string,
  { boundaries, ...how }: Description & { boundaries: number[] },
): (value: number, attributes: Attributes) => void {
  let made: ReturnType<ReturnType<typeof metrics.getMeter>['createHistogram']> | undefined
  return (value, attributes) => {
    made ??= meterOf(name).createHistogram(name, { ...how, advice: { explicitBucketBoundaries: boundaries } })
    made.record(value, attributes)
  }
}

/** `auth.sign_ins` belongs to the meter `auth`. */
const meterOf = (name: string) => metrics.getMeter(name.slice(0, name.indexOf('.')))

/** How something ended, as an attribute: the code of an expected failure, of which there are finitely many. */
export const resultOf = (error: unknown): string => (error instanceof ApiError ? error.code : 'unexpected_failure')

/** Runs `work` and counts how it ended: `ok` or the code of its failure. */
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
