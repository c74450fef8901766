// Records changes of users by transactions. The state before is read when a flow locks the user, the state after right
// before the commit. Their differences and the flow's notes are the events (write-events.ts), which are written in that
// transaction. Sign-ins that touch nothing else write theirs with the session (core/sessions). Nothing is read or
// written for events that no receiver wants.
import { afterCommit, beforeCommit } from '@services/common/database/after-commit'
import type { Logger } from '@services/common/telemetry/logger'
import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type UserWatch, watchUsers } from '../../db/watched-users.ts'
import { OF_CHANGES } from './differences.ts'
import { readUserStates } from './user-state.store.ts'
import { findWanted } from './webhooks.store.ts'
import { noRecord, type Recorded, type WriteDeps, writeEvents } from './write-events.ts'

interface RecorderDeps extends Omit<WriteDeps, 'wants'> {
  log: Logger
}

export type EventRecorder = ReturnType<typeof recordEvents>

/**
 * Records the changes of this database handle, from the first `refresh` on, which finds whether there is a receiver.
 */
export function recordEvents(deps: RecorderDeps) {
  const recorded = new WeakMap<object, Recorded>()
  const listeners = new Set<() => void>()
  let on = false
  let wanted = new Set<string>()
  const wants = (event: string) => wanted.has('*') || wanted.has(`${event.split('.', 1)[0]}.*`) || wanted.has(event)
  /** The end of sessions has its reason from the same comparison. */
  const compares = () => ['session.ended', ...OF_CHANGES].some(wants)
  const tell = () => {
    for (const listener of listeners) listener()
  }
  const recordOf = async (trx: Transaction<DB>): Promise<Recorded> => {
    const known = recorded.get(trx)
    if (known) return known
    const record = noRecord()
    recorded.set(trx, record)
    await beforeCommit(trx, async () => {
      if (await writeEvents({ ...deps, wants }, trx, record)) await afterCommit(trx, tell)
    })
    return record
  }
  const watch: UserWatch = {
    isOn: () => on,
    wants,
    async begin(trx, userIds, state) {
      const { begun } = await recordOf(trx)
      const unknown = userIds.filter((id) => !begun.has(id))
      const isRead = state !== 'new' && unknown.length > 0 && compares()
      const states = isRead ? await readUserStates(trx, unknown) : undefined
      for (const id of unknown) begun.set(id, { before: states?.get(id), isCompared: isRead || state === 'new' })
    },
    follows: (db, userId) => recorded.get(db)?.begun.has(userId) ?? false,
    async note(trx, note) {
      const record = await recordOf(trx)
      if ('sessionsEnd' in note) record.reasons.set(note.userId, note.sessionsEnd)
      else if ('endedSessions' in note) record.ended.push(note)
      else if ('newSession' in note) record.created.push(note)
      else record.notes.push(note)
    },
    tell,
  }
  const read = async () => {
    const found = await findWanted(deps.db)
    wanted = new Set(found.wanted)
    on = wanted.size > 0 || found.hasEvents
    watchUsers(deps.db, watch)
  }
  let reading = Promise.resolve()
  /** Reads after a read under way, whose older answer would otherwise replace this one. */
  const refresh = (): Promise<void> => {
    reading = reading.then(read, read)
    return reading
  }
  return {
    isOn: watch.isOn,
    refresh,
    /** Lets the dispatcher of this process look for due deliveries. */
    wake: tell,
    /** Calls `listener` after each commit with events of this process. */
    onEvents: (listener: () => void) => {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
  }
}
