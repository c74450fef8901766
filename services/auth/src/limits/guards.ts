import type { ErrorCode } from '../errors.ts'
import { consume, type Limiter } from './limiter.ts'

/** One of several caps that a message must keep all of. */
export interface Guard {
  limiter: Limiter
  /** What it is counted under. */
  keyFor(address: string): string
}

/**
 * Counts everywhere or nowhere: a message refused by one guard was not sent and uses up no other's share. Guards go from the
 * narrowest to the widest: an address that is over its own cap takes nothing from the others.
 */
export async function countAll(guards: readonly Guard[], address: string, code: ErrorCode): Promise<void> {
  const counted: Guard[] = []
  try {
    for (const guard of guards) {
      await consume(guard.limiter, guard.keyFor(address), code)
      counted.push(guard)
    }
  } catch (refusal) {
    await Promise.all(counted.map(({ limiter, keyFor }) => limiter.reward(keyFor(address))))
    throw refusal
  }
}
