import type { ErrorCode } from '../errors.ts'
import { consume, countAll, type GiveBack, type Limiter } from './limiter.ts'

/** One of several caps that a message must keep all of. */
export interface Guard {
  limiter: Limiter
  /** What it is counted under. */
  keyFor(address: string): string
}

/** Counts a message. Guards go from the narrowest to the widest: an address over its own cap takes nothing from the others. */
export const countGuarded = (guards: readonly Guard[], address: string, code: ErrorCode): Promise<GiveBack> =>
  countAll(
    guards.map(
      ({ limiter, keyFor }) =>
        () =>
          consume(limiter, keyFor(address), code),
    ),
  )

/** Share that a mail is counted in: of requests that anybody can make, of a user with a live session, or of admins, without a cap. */
export type MailShare = 'anybody' | 'admins' | { userId: string }
