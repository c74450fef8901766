import type { Logger } from '@services/common/telemetry/logger'
import { outsideTrace } from '@services/common/telemetry/spans'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type ClipState, findStates } from './clips.store.ts'

/** Workers note progress once a second. */
const READ_EVERY_MS = 1_000

type OnState = (state: ClipState) => void

/** Reads the states of all watched clips with one statement a second, and nothing while none is watched. */
export function createClipWatch({ db, log }: { db: Kysely<DB>; log: Logger }) {
  const watched = new Map<string, Set<OnState>>()
  let timer: NodeJS.Timeout | undefined
  let isReading = false

  const read = async (ids: string[]) => {
    try {
      const states = await findStates(db, ids)
      for (const id of ids) {
        const state = states.get(id) ?? { state: 'deleted', progress: 0, errorCode: null }
        for (const onState of watched.get(id) ?? []) onState(state)
      }
    } catch (err) {
      log.debug({ err }, 'clip states not read, will retry')
    }
  }
  const readAll = async () => {
    if (isReading) return
    isReading = true
    await read([...watched.keys()])
    isReading = false
  }

  return {
    /** Calls `onState` with each state that is read. The returned function ends it. */
    watch: (clipId: string, onState: OnState) => {
      const others = watched.get(clipId) ?? new Set()
      watched.set(clipId, others.add(onState))
      timer ??= outsideTrace(() => setInterval(readAll, READ_EVERY_MS))
      return () => {
        others.delete(onState)
        if (others.size === 0 && watched.get(clipId) === others) watched.delete(clipId)
        if (watched.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },
    refresh: (clipId: string) => read([clipId]),
  }
}
