// Consequences of an attempt: the wait before the next one, and the pause or the end of its receiver.

export interface AttemptResult {
  /** null: no answer. */
  status: number | null
  /** null: delivered. */
  error: string | null
}

/** A redirect is not followed: the receiver's address was checked, and its target was not. */
export function resultOfStatus(status: number): AttemptResult {
  if (status >= 200 && status < 300) return { status, error: null }
  return { status, error: status >= 300 && status < 400 ? 'redirect' : 'status' }
}

/** Wait after so many failed attempts in a row: it doubles from `firstMs` to `longestMs`. */
export const growingWait =
  ({ firstMs, longestMs }: { firstMs: number; longestMs: number }) =>
  (attempts: number): number =>
    Math.min(longestMs, firstMs * 2 ** (attempts - 1))

/** Pause of a receiver that did not answer at all: each attempt would hold a slot until its timeout. */
export const pauseAfter = growingWait({ firstMs: 10_000, longestMs: 600_000 })

/** Time of uninterrupted failures after which a receiver is disabled. */
const DISABLE_AFTER_MS = 5 * 86_400_000

/** Reason to disable a receiver after a failed attempt. 410 means that it wants no more events. */
export function reasonToDisable(
  { failing_since: since }: { failing_since: Date | null },
  { status }: AttemptResult,
  now: Date,
): 'gone' | 'failing' | undefined {
  if (status === 410) return 'gone'
  return since && now.getTime() - since.getTime() > DISABLE_AFTER_MS ? 'failing' : undefined
}
