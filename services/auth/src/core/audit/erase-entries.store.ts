// Erasure of personal data in audit entries. A user counts as deleted when its row is gone, by whatever way, or was
// deleted softly. No list of deleted users is kept, so deletions cost nothing and those before the setting count too.
import { distinctValues } from '@services/common/database/distinct-values'
import { jsonb } from '@services/common/database/pool'
import { BATCH } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Position } from '../../db/position.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import { NIL_UUID, UUID } from '../../db/uuid.ts'
import { type Person, withoutPersonalData } from './personal-data.ts'

interface Erasure {
  /** Users deleted before this time lose their data. */
  before: Date
  /** Names of admin roles. */
  roles: readonly string[]
}

const ENTRIES = sql.table('audit_log_entries')

/** Id of a person in an entry; each is the first column of an index. */
const ID_OF: Record<Person, RawBuilder<string>> = {
  actor: sql`payload ->> 'actor_id'`,
  target: sql`payload -> 'traits' ->> 'user_id'`,
}

const isErased = (person: Person) => sql`coalesce(payload -> 'erased' ? ${sql.lit(person)}, false)`

/**
 * Erases the data of deleted users, both in their own entries and in those about them. Yields the number after each
 * batch.
 */
export async function* eraseDeletedUsers(db: Kysely<DB>, erasure: Erasure): AsyncGenerator<number, void> {
  for (const person of ['actor', 'target'] as const) {
    for (let last: string | undefined; ; ) {
      const ids = await listIds(db, person, last)
      yield 0
      const users = ids.filter((id) => UUID.test(id) && id !== NIL_UUID)
      yield* eraseEntriesOf(db, person, await listDue(db, person, users, erasure.before), erasure)
      if (ids.length < BATCH) break
      last = ids.at(-1)
    }
  }
}

/** Lists the next ids of persons. */
async function listIds(db: Kysely<DB>, person: Person, last: string | undefined): Promise<string[]> {
  const persons = { from: ENTRIES, value: ID_OF[person], after: sql`${last ?? ''}` }
  const { rows } = await sql<{ id: string }>`
    with recursive ${distinctValues('ids', persons)}
    select value as id from ids where value is not null limit ${sql.lit(BATCH)}`.execute(db)
  return rows.map((row) => row.id)
}

/**
 * Lists users of `ids` deleted before the time whose newest entry still has their data. Entries are erased in order, so
 * the newest one is erased last; an entry added afterwards with an older time is missed. A row that is gone has no
 * time: the newest entry counts, as a rule that of the deletion.
 */
async function listDue(db: Kysely<DB>, person: Person, ids: string[], before: Date): Promise<string[]> {
  if (ids.length === 0) return []
  const isRecent = (of: Person) =>
    sql`exists (select from ${ENTRIES} where ${ID_OF[of]} = ids.id and created_at >= ${before})`
  const { rows } = await sql<{ id: string }>`
    select ids.id from unnest(${ids}::text[]) ids (id)
      left join ${sql.table('users')} owner on owner.id = ids.id::uuid
      cross join lateral (
        select ${isErased(person)} as is_erased from ${ENTRIES}
        where ${ID_OF[person]} = ids.id order by created_at desc, id limit 1) newest
    where not newest.is_erased and case
      when owner.id is not null then owner.deleted_at < ${before}
      else not ${isRecent('actor')} and not ${isRecent('target')} end`.execute(db)
  return rows.map((row) => row.id)
}

/** Erases a batch of all users at once, of each the oldest entries first. */
async function* eraseEntriesOf(
  db: Kysely<DB>,
  person: Person,
  users: string[],
  { roles }: Erasure,
): AsyncGenerator<number, void> {
  let last: { user: string; time: string } | undefined
  for (let left = users; left.length > 0; ) {
    const isNext = last ? sql`and (owner.id <> ${last.user} or created_at >= ${last.time}::timestamptz)` : sql``
    const { rows } = await sql<{ id: string; user: string; time: string }>`
      select entry.id, owner.id as user, entry.created_at::text as time
      from unnest(${left}::text[]) with ordinality owner (id, place) cross join lateral (
        select id, created_at from ${ENTRIES}
        where ${ID_OF[person]} = owner.id ${isNext} and not ${isErased(person)}
        order by created_at, id desc limit ${sql.lit(BATCH)}) entry
      order by owner.place, entry.created_at, entry.id desc limit ${sql.lit(BATCH)}`.execute(db)
    yield await erase(db, rows, person, roles)
    last = rows.at(-1)
    if (!last || rows.length < BATCH) return
    left = left.slice(left.indexOf(last.user))
  }
}

/**
 * Erases the typed addresses and clients of refused sign-ins, which name no account and so have no deletion to wait
 * for. Returns the position of the next run, since no entry is written with an old time.
 */
export async function* eraseRefusedSignIns(
  db: Kysely<DB>,
  { before, roles }: Erasure,
  after: Position | undefined,
): AsyncGenerator<number, Position | undefined> {
  for (let last = after; ; ) {
    const time = last && sql`${last.created_at}::timestamptz`
    const isNext = last ? sql`and created_at >= ${time} and (created_at > ${time} or id < ${last.id}::uuid)` : sql``
    const { rows } = await sql<Position & { is_unknown: boolean }>`
      select id, created_at::text, payload ->> 'actor_id' = ${NIL_UUID} as is_unknown from ${ENTRIES} entry
      where payload ->> 'action' = 'login_failed' and created_at < ${before} ${isNext}
      order by entry.created_at, id desc limit ${sql.lit(BATCH)}`.execute(db)
    const ofUnknown = rows.filter((row) => row.is_unknown)
    last = rows.at(-1) ?? last
    yield await erase(db, ofUnknown, 'actor', roles)
    if (rows.length < BATCH) return last
  }
}

/**
 * Erases entries that have not been, and returns their number. It waits for those that another process erases: a
 * skipped one would stay behind the newest, which says that all are done. Requests never lock an entry.
 */
async function erase(
  db: Kysely<DB>,
  entries: readonly { id: string }[],
  person: Person,
  roles: readonly string[],
): Promise<number> {
  if (entries.length === 0) return 0
  const ids = entries.map(({ id }) => id)
  return db.transaction().execute(async (trx) => {
    // The same order in all processes, so that none waits for another that waits for it.
    const { rows } = await sql<{ id: string; payload: Metadata; ip_address: string }>`
      select id, payload, ip_address from ${ENTRIES}
      where id = any (${ids}::uuid[]) and not ${isErased(person)} order by id for update`.execute(trx)
    const left = rows.map((row) => ({ id: row.id, ...withoutPersonalData(row, person, roles) }))
    await sql`update ${ENTRIES} entry set payload = erased.payload, ip_address = erased.ip_address
      from jsonb_to_recordset(${jsonb(left)}) erased (id uuid, payload jsonb, ip_address text)
      where entry.id = erased.id`.execute(trx)
    return rows.length
  })
}
