import type { Logger } from '@services/common/logger'
import { outsideTrace } from '@services/common/tracing'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type ClipState, findStates } from './clip-states.store.ts'

/** Workers note progress once a second. */
const LOOK_EVERY_MS = 1_000

type Tell = (state: ClipState) => void

/** Looks at all clips that somebody watches with one statement, and at nothing when nobody does. */
export interface ClipWatch {
  /** Calls `tell` with the state of a clip after each look. Returns what ends it. */
  watch(clipId: string, tell: Tell): () => void
  /** Looks now. */
  look(clipId: string): Promise<void>
}

export function createClipWatch({ db, log }: { db: Kysely<DB>; log: Logger }): ClipWatch {
  const watched = new Map<string, Set<Tell>>()
  let timer: NodeJS.Timeout | undefined
  let isLooking = false

  const lookAt = async (ids: string[]) => {
    try {
      const states = await findStates(db, ids)
      for (const id of ids) {
        const state = states.get(id) ?? { state: 'deleted', progress: 0, errorCode: null }
        for (const tell of watched.get(id) ?? []) tell(state)
      }
    } catch (err) {
      log.debug({ err }, 'states could not be read, will try again')
    }
  }
  const lookAtAll = async () => {
    if (isLooking) return
    isLooking = true
    await lookAt([...watched.keys()])
    isLooking = false
  }

  return {
    watch: (clipId, tell) => {
      const others = watched.get(clipId) ?? new Set()
      watched.set(clipId, others.add(tell))
      timer ??= outsideTrace(() => setInterval(lookAtAll, LOOK_EVERY_MS))
      return () => {
        others.delete(tell)
        if (others.size === 0 && watched.get(clipId) === others) watched.delete(clipId)
        if (watched.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },
    look: (clipId) => lookAt([clipId]),
  }
}
