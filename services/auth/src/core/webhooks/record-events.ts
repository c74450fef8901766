// Records changes of users by transactions. The state before is read when a flow locks the user, the state after right
// before the commit. Their differences and the flow's notes are the events (differences.ts). They are written in that
// transaction. Sign-ins that touch nothing else write theirs with the session (core/sessions). Without a receiver
// nothing of this happens.
import { afterCommit, beforeCommit } from '@services/common/database/after-commit'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely, Transaction } from 'kysely'
import { type EventRow, storeEvents } from '../../db/events.store.ts'
import type { DB } from '../../db/tables.ts'
import { type Note, type SessionEnd, type UserWatch, watchUsers } from '../../db/watched-users.ts'
import type { AcceptDeps } from '../sessions/accepted-session.ts'
import { registeredBodies } from '../sessions/user-answers.ts'
import type { UserBody } from '../users/user-shape.ts'
import { eraseEvents } from './deliveries.store.ts'
import { differences, type Told, type UserEvent } from './differences.ts'
import { readUserStates, type UserState } from './user-state.store.ts'
import { hasReceiverOrEvent } from './webhooks.store.ts'

/** After this time every process knows that there is a receiver, or none. */
const REFRESH_EVERY_MS = 5_000

export interface RecorderDeps extends AcceptDeps {
  db: Kysely<DB>
  log: Logger
  newRowId: () => string
}

interface Recorded {
  before: Map<string, UserState | undefined>
  reasons: Map<string, SessionEnd>
  notes: Extract<Note, { event: string }>[]
}

export type EventRecorder = ReturnType<typeof recordEvents>

/**
 * Records the changes of this database handle, from the first `refresh` on, which finds whether there is a receiver.
 */
export function recordEvents(deps: RecorderDeps) {
  const recorded = new WeakMap<object, Recorded>()
  const listeners = new Set<() => void>()
  let on = false
  const tell = () => {
    for (const listener of listeners) listener()
  }
  const recordOf = async (trx: Transaction<DB>): Promise<Recorded> => {
    const known = recorded.get(trx)
    if (known) return known
    const record: Recorded = { before: new Map(), reasons: new Map(), notes: [] }
    recorded.set(trx, record)
    await beforeCommit(trx, async () => {
      if (await writeEvents(deps, trx, record)) await afterCommit(trx, tell)
    })
    return record
  }
  const watch: UserWatch = {
    isOn: () => on,
    async begin(trx, userId, state) {
      const { before } = await recordOf(trx)
      if (before.has(userId)) return
      before.set(userId, state === 'new' ? undefined : (await readUserStates(trx, [userId])).get(userId))
    },
    compares: (db, userId) => recorded.get(db)?.before.has(userId) ?? false,
    async note(trx, note) {
      const { reasons, notes } = await recordOf(trx)
      if ('event' in note) notes.push(note)
      else reasons.set(note.userId, note.sessionsEnd)
    },
    tell,
  }
  const refresh = async () => {
    on = await hasReceiverOrEvent(deps.db)
    watchUsers(deps.db, watch)
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
    /** Looks again and again, until the returned function is called. */
    start() {
      const look = () => refresh().catch((err) => deps.log.warn({ err }, 'receivers of events not read, will retry'))
      const timer = setInterval(look, REFRESH_EVERY_MS).unref()
      return () => clearInterval(timer)
    },
  }
}

/** Returns whether there were events. */
async function writeEvents(deps: RecorderDeps, trx: Transaction<DB>, record: Recorded): Promise<boolean> {
  const ids = [...record.before.keys(), ...record.notes.flatMap(({ userId }) => userId ?? [])]
  const states = await readUserStates(trx, [...new Set(ids)])
  const told = await withBodies(deps, trx, [...record.before.values(), ...states.values()])
  const toldOf = (state: UserState | undefined) => state && told.get(state)
  const now = deps.now()
  const noted = record.notes.map(({ userId, event, about }) => {
    const user = userId === null ? undefined : (toldOf(states.get(userId))?.body ?? { id: userId })
    return { userId, event, data: { ...(user && { user }), ...about } }
  })
  const compared = [...record.before].flatMap(([id, before]) => {
    const change = { before: toldOf(before), after: toldOf(states.get(id)), sessionsEnd: record.reasons.get(id), now }
    return differences(change).map((event) => toRow(id, event))
  })
  const gone = compared.flatMap(({ event, userId }) => (event === 'user.deleted' ? [userId] : []))
  if (gone.length > 0) await eraseEvents(trx, gone)
  const rows = [...noted, ...compared].map(
    ({ data, ...row }): EventRow => ({ id: deps.newRowId(), ...row, data: JSON.stringify(data) }),
  )
  await storeEvents(trx, rows, now)
  return rows.length > 0
}

const toRow = (userId: string, { event, user, about }: UserEvent) => ({ userId, event, data: { user, ...about } })

async function withBodies(
  deps: RecorderDeps,
  trx: Transaction<DB>,
  states: readonly (UserState | undefined)[],
): Promise<Map<UserState, Told>> {
  const known = states.filter((state) => state !== undefined)
  const bodies = await registeredBodies(
    deps,
    trx,
    known.map(({ user }) => user),
  )
  return new Map(known.map((state, index) => [state, { ...state, body: bodies[index] as UserBody }]))
}
