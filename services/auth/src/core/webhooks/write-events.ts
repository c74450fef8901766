// The end of a recorded transaction: reads the users that have events and writes those. Users come in groups and ended
// sessions in parts, so that memory and statements stay small however many there are. The user is written once.
import type { Kysely, Transaction } from 'kysely'
import { SESSIONS_OF_PART } from '../../db/ended-sessions.store.ts'
import { type EndedSessions, type EventOfUser, type EventUser, storeEnds, storeEvents } from '../../db/events.store.ts'
import type { DB } from '../../db/tables.ts'
import type { Note, SessionEnd } from '../../db/watched-users.ts'
import type { AcceptDeps } from '../sessions/accepted-session.ts'
import { registeredBodies } from '../sessions/user-answers.ts'
import type { UserBody } from '../users/user-shape.ts'
import { differences, isLeft, OF_CREATION, reasonOfEnd, type Told } from './differences.ts'
import { readUserStates, type UserState } from './user-state.store.ts'

type NoteWith<Member extends string> = Extract<Note, { [Name in Member]: unknown }>

export interface Recorded {
  /** Users by id; `before` is missing for a new one, and where nothing is compared. */
  begun: Map<string, { before: UserState | undefined; isCompared: boolean }>
  reasons: Map<string, SessionEnd>
  ended: NoteWith<'endedSessions'>[]
  created: NoteWith<'newSession'>[]
  notes: NoteWith<'event'>[]
}

export const noRecord = (): Recorded => ({
  ...{ begun: new Map(), reasons: new Map() },
  ...{ ended: [], created: [], notes: [] },
})

export interface WriteDeps extends AcceptDeps {
  db: Kysely<DB>
  newRowId: () => string
  wants: (event: string) => boolean
}

/** Users whose states are in memory at once. */
const USERS_AT_ONCE = 100

/** Returns whether there were events. */
export async function writeEvents(deps: WriteDeps, trx: Transaction<DB>, record: Recorded): Promise<boolean> {
  const wanted = onlyWanted(deps, record)
  const others = [...wanted.notes, ...wanted.ended, ...wanted.created].flatMap(({ userId }) => userId ?? [])
  const userIds = [...new Set([...wanted.begun.keys(), ...others])]
  let hasEvents = false
  // The first group has the notes without a user.
  for (let start = 0; start === 0 || start < userIds.length; start += USERS_AT_ONCE) {
    const ids = new Set<string | null>(userIds.slice(start, start + USERS_AT_ONCE))
    if (start === 0) ids.add(null)
    if (await writeGroup(deps, trx, ofUsers(wanted, ids))) hasEvents = true
  }
  return hasEvents
}

function onlyWanted({ wants }: WriteDeps, record: Recorded): Recorded {
  const isNewWanted = OF_CREATION.some(wants)
  return {
    ...record,
    begun: new Map([...record.begun].filter(([, each]) => each.isCompared && (each.before || isNewWanted))),
    notes: record.notes.filter(({ event }) => wants(event)),
  }
}

function ofUsers(record: Recorded, ids: ReadonlySet<string | null>): Recorded {
  const isOne = ({ userId }: { userId: string | null }) => ids.has(userId)
  return {
    ...record,
    begun: new Map([...record.begun].filter(([id]) => ids.has(id))),
    ended: record.ended.filter(isOne),
    created: record.created.filter(isOne),
    notes: record.notes.filter(isOne),
  }
}

async function writeGroup(deps: WriteDeps, trx: Transaction<DB>, record: Recorded): Promise<boolean> {
  const { begun, notes, ended, created } = record
  const now = deps.now()
  const { before, after } = await readStates(deps, trx, record)
  const shown = new Map<string, EventUser>()
  /** Returns the id of the stored user; null for a deleted one, whose events have its id alone. */
  const show = (userId: string, event: string): string | null => {
    const told = after(userId)
    if (!isLeft(told)) return null
    const user = shown.get(userId) ?? { id: deps.newRowId(), userId, data: told.body, events: new Set() }
    shown.set(userId, user)
    user.events.add(event)
    return user.id
  }
  const toRow = (userId: string | null, event: string, about: object = {}): EventOfUser => {
    const eventUserId = userId === null ? null : show(userId, event)
    const idAlone = userId !== null && eventUserId === null && { user: { id: userId } }
    return { id: deps.newRowId(), userId, event, data: JSON.stringify({ ...idAlone, ...about }), eventUserId }
  }
  const changes = [...begun.keys()].flatMap((userId) =>
    differences({ before: before(userId), after: after(userId), now })
      .filter(({ event }) => deps.wants(event))
      .map((change) => ({ userId, ...change })),
  )
  const isLast = ({ event }: { event: string }) => event === 'user.deleted'
  const first = [
    ...notes.map(({ userId, event, about }) => toRow(userId, event, about)),
    ...changes.filter((change) => !isLast(change)).map(({ userId, event, about }) => toRow(userId, event, about)),
  ]
  const ends = ended.map(({ userId, endedSessions: sessions, count }): EndedSessions => {
    const change = { before: before(userId), after: after(userId) }
    const given = isLeft(change.after) ? record.reasons.get(userId) : undefined
    return { userId, eventUserId: show(userId, 'session.ended'), reason: given ?? reasonOfEnd(change), sessions, count }
  })
  for (const { userId } of created) show(userId, 'session.created')
  await storeEvents(trx, first, [...shown.values()], now)
  for (const parts of together(ends)) {
    const ids = parts.flatMap(({ count }) => Array.from({ length: count }, deps.newRowId))
    await storeEnds(trx, parts, ids, now)
  }
  const last = [
    ...created.map(({ userId, newSession: session }) => toRow(userId, 'session.created', { session })),
    ...changes.filter(isLast).map(({ userId, event, about }) => toRow(userId, event, about)),
  ]
  await storeEvents(trx, last, [], now)
  return first.length + ends.length + last.length > 0
}

/** Joins small parts, such as those of many users, so that each statement has about as many sessions. */
function together(parts: readonly EndedSessions[]): EndedSessions[][] {
  const groups: EndedSessions[][] = []
  let count = SESSIONS_OF_PART
  for (const part of parts) {
    if (count + part.count > SESSIONS_OF_PART) {
      groups.push([])
      count = 0
    }
    groups.at(-1)?.push(part)
    count += part.count
  }
  return groups
}

/** Reads the users as they are now, and finds them as they were, each with the body that admins see. */
async function readStates(deps: WriteDeps, trx: Transaction<DB>, { begun, notes, ended, created }: Recorded) {
  const ids = [...begun.keys(), ...[...notes, ...ended, ...created].flatMap(({ userId }) => userId ?? [])]
  const states = ids.length > 0 ? await readUserStates(trx, [...new Set(ids)]) : new Map<string, UserState>()
  const known = [...[...begun.values()].flatMap(({ before }) => before ?? []), ...states.values()]
  const users = known.map(({ user }) => user)
  const bodies = await registeredBodies(deps, trx, users)
  const told = new Map(known.map((state, index) => [state, { ...state, body: bodies[index] as UserBody }]))
  const find = (state: UserState | undefined): Told | undefined => state && told.get(state)
  return {
    before: (id: string) => find(begun.get(id)?.before),
    after: (id: string) => find(states.get(id)),
  }
}
