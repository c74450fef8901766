import { setTimeout as sleep } from 'node:timers/promises'

/** What the work comes to, or `late` after `ms`: it goes on then, and nobody hears of it any more. */
export async function waitAtMost<Result>(ms: number, work: Result | Promise<Result>): Promise<Result | 'late'> {
  const over = new AbortController()
  const late = sleep(ms, 'late' as const, { signal: over.signal }).catch(() => 'late' as const)
  try {
    return await Promise.race([work, late])
  } finally {
    over.abort()
  }
}
