// Counts the clips that wait, for the limits of the queue. Near a limit each count is new, so limits are exact in all
// replicas. Far below it a count serves for up to a second.
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { countProcessing, type Processing } from './sources.store.ts'

export type QueueDepth = ReturnType<typeof createQueueDepth>

/** Use of a count; twice as long for all but the first that counts again. */
const REUSED_MS = 500

/** More clips than one installation admits in a second (infra/SCALING.md). Counting so few is fast. */
const FAR = 1_000

interface Counted {
  clips: number
  at: number
  isCountedAgain: boolean
}

/** A count reads each of the waiting clips, and each upload asks for it three times. */
export function createQueueDepth(count = countProcessing, now = () => performance.now()) {
  /** Keys are tokens, and `all`. */
  const counted = new Map<string | null, Counted>()

  function known(key: string | null, limit: number): number | undefined {
    const last = counted.get(key)
    if (!last || last.clips + FAR >= limit) return undefined
    const age = now() - last.at
    if (age < REUSED_MS || (last.isCountedAgain && age < 2 * REUSED_MS)) return last.clips
    last.isCountedAgain = true
    return undefined
  }

  function keep(key: string | null, clips: number) {
    if (clips < FAR) counted.delete(key)
    else counted.set(key, { clips, at: now(), isCountedAgain: false })
    return clips
  }

  return {
    async count(db: Kysely<DB>, tokenId: string | null, limits: Processing): Promise<Processing> {
      const all = known('all', limits.all)
      // Near the limit of all it matters whether the token has none.
      const ofToken = all === undefined ? undefined : known(tokenId, limits.ofToken)
      if (all !== undefined && ofToken !== undefined) return { all, ofToken }
      // A token without waiting clips has twice the limit.
      const most = { all: all === undefined ? 2 * limits.all : 0, ofToken: limits.ofToken }
      const found = await count(db, tokenId, most)
      return { all: all ?? keep('all', found.all), ofToken: keep(tokenId, found.ofToken) }
    },
  }
}
