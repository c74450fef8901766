// Counts the clips that wait, for the limits of the queue. The one rule: near a limit each count is new, so limits are exact
// in all replicas; far below it a count serves for a second. Tests: waiting-clips.test.ts. Next: sources.store.ts.
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { countProcessing, type Processing } from './sources.store.ts'

export type WaitingClips = ReturnType<typeof createWaitingClips>

/** Longest use of a count. */
const REUSED_MS = 1_000

/** More clips than one installation admits in that time (infra/SCALING.md); counting so few is fast. */
const FAR = 1_000

/** A count reads each of the waiting clips, and each upload asks for it three times. */
export function createWaitingClips(count = countProcessing, now = () => performance.now()) {
  /** Keys are tokens, and `all`. */
  const counted = new Map<string | null, number>()
  let since = now()
  return {
    async count(db: Kysely<DB>, tokenId: string | null, limits: Processing): Promise<Processing> {
      if (now() - since >= REUSED_MS) {
        counted.clear()
        since = now()
      }
      const known = (key: string | null, limit: number) => {
        const last = counted.get(key) ?? Number.POSITIVE_INFINITY
        return last + FAR < limit ? last : undefined
      }
      const [all, ofToken] = [known('all', limits.all), known(tokenId, limits.ofToken)]
      if (all !== undefined && ofToken !== undefined) return { all, ofToken }
      const found = await count(db, tokenId, {
        // A token without waiting clips has twice the limit.
        all: all === undefined ? 2 * limits.all : 0,
        ofToken: ofToken === undefined ? limits.ofToken : 0,
      })
      if (all === undefined) counted.set('all', found.all)
      if (ofToken === undefined) counted.set(tokenId, found.ofToken)
      return { all: all ?? found.all, ofToken: ofToken ?? found.ofToken }
    },
  }
}
