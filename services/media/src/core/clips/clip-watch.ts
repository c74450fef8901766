import type { Logger } from '@services/common/telemetry/logger'
import { outsideTrace } from '@services/common/telemetry/spans'
import type { Kysely } from 'kysely'
import type { DB, Scope } from '../../db/tables.ts'
import { findScopes } from '../tokens/tokens.store.ts'
import { type ClipState, findStates } from './clips.store.ts'

/** Workers note progress once a second. */
const READ_EVERY_MS = 1_000

interface Watcher {
  tokenId: string
  /** Whether a token with these scopes may watch the clip. */
  mayWatch: (token: { scopes: Scope[] }) => boolean
  onState: (state: ClipState) => void
  /** The token is expired, revoked, or has lost its scope. */
  onRefusal: () => void
}

/**
 * Reads the states of all watched clips and the watching tokens once a second, and nothing while no clip is watched.
 */
export function createClipWatch({ db, log, now }: { db: Kysely<DB>; log: Logger; now: () => Date }) {
  const watched = new Map<string, Set<Watcher>>()
  let timer: NodeJS.Timeout | undefined
  let isReading = false

  const read = async (ids: string[]) => {
    try {
      const tokenIds = new Set(ids.flatMap((id) => [...(watched.get(id) ?? [])].map(({ tokenId }) => tokenId)))
      const [states, scopes] = await Promise.all([findStates(db, ids, now()), findScopes(db, [...tokenIds], now())])
      for (const id of ids) {
        const state = states.get(id) ?? { state: 'deleted', progress: 0, errorCode: null }
        for (const { tokenId, mayWatch, onState, onRefusal } of watched.get(id) ?? []) {
          if (mayWatch({ scopes: scopes.get(tokenId) ?? [] })) onState(state)
          else if (tokenIds.has(tokenId)) onRefusal()
        }
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
    /** Reports each state that is read, as long as the token may watch the clip. The returned function ends it. */
    watch: (clipId: string, watcher: Watcher) => {
      const others = watched.get(clipId) ?? new Set()
      watched.set(clipId, others.add(watcher))
      timer ??= outsideTrace(() => setInterval(readAll, READ_EVERY_MS))
      return () => {
        others.delete(watcher)
        if (others.size === 0 && watched.get(clipId) === others) watched.delete(clipId)
        if (watched.size > 0) return
        clearInterval(timer)
        timer = undefined
      }
    },
    refresh: (clipId: string) => read([clipId]),
  }
}
