// Search in the audit log. In a large log an index finds the entries of an action or of a user, newest first. Only a
// small log is read. Tests: flows/admin/users/large-tables.test.ts.
import { PLANNED_EACH_TIME } from '@services/common/database/connection'
import { MAX_COUNTED } from '@services/common/database/counted-page'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { containing } from '../../db/like.ts'
import { isOlder, type Position } from '../../db/position.ts'
import { searchReach } from '../../db/search-reach.store.ts'
import { containsText } from '../../db/search-users.store.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { actionsNamed } from './actions.ts'

/** Case-insensitive search for a part of the actor, the action or the log type, or for a user by id. */
export interface AuditSearch {
  scope: 'author' | 'action' | 'type' | 'user'
  text: string
}

/** Part of the log: from a time on, before a time, and behind a position with the newest first. */
export interface AuditRange {
  from?: Date | undefined
  before?: Date | undefined
  after?: Position | undefined
}

/** Users of one search in a large log: each costs a look into the index. */
const MAX_AUTHORS = 100

/** Selects of id and time of the entries that match. */
export interface Found {
  /** Those that follow a position, for the first `limit` of them, newest first. */
  newest: RawBuilder<unknown>
  /** All of them, for the planner's estimate: reading them would take too long. */
  all: RawBuilder<unknown>
}

export async function found(
  db: Kysely<DB>,
  { scope, text }: AuditSearch,
  limit: number,
  range: AuditRange,
): Promise<Found> {
  const within = andWithin(range)
  if (scope === 'user') {
    // Most entries of a user are by the user, and those of another actor name the user as the target.
    return {
      newest: newestOf({ actor_id: [text], target_id: [text] }, within, limit),
      all: sql`select id from (${entriesOf('actor_id', [text], within)}) of_actor
        full join (${entriesOf('target_id', [text], within)}) of_target using (id)`,
    }
  }
  if (scope !== 'author') {
    const actions = actionsNamed(scope, text)
    return { newest: newestOf({ action: actions }, within, limit), all: entriesOf('action', actions, within) }
  }
  const { isLarge } = await searchReach(db, 'audit_log_entries')
  if (!isLarge) return ofAnyAuthor(text, within)
  const ids = await userIds(db, text)
  /** Names of deleted users, of roles and in refused sign-ins. */
  const usernames = [...new Set([text, text.toLowerCase()])]
  return {
    newest: newestOf({ actor_id: ids, actor_username: usernames }, within, limit),
    // Most entries of a whole address are also its user's. The planner expects a full join to have the rows of its
    // larger side.
    all: sql`select id from (${entriesOf('actor_id', ids, within)}) of_ids
      full join (${entriesOf('actor_username', usernames, within)}) of_usernames using (id)`,
  }
}

const ENTRIES = sql.table('audit_log_entries')

/** Selects id and time of all entries of a range. */
export const allWithin = (range: AuditRange) =>
  sql`select id, created_at from ${ENTRIES} where true ${andWithin(range)}`

const andWithin = ({ from, before, after }: AuditRange) =>
  sql.join(
    [
      ...(from ? [sql`and created_at >= ${from}`] : []),
      ...(before ? [sql`and created_at < ${before}`] : []),
      ...(after ? [sql`and ${isOlder(after)}`] : []),
    ],
    sql` `,
  )

/** Members with an index. */
const KEYS = {
  action: sql`payload ->> 'action'`,
  actor_id: sql`payload ->> 'actor_id'`,
  actor_username: sql`payload ->> 'actor_username'`,
  target_id: sql`payload -> 'traits' ->> 'user_id'`,
}
type Key = keyof typeof KEYS

const entriesOf = (key: Key, values: readonly string[], within: RawBuilder<unknown>) =>
  sql`select id, created_at from ${ENTRIES} where ${KEYS[key]} = any (${values}::text[]) ${within}`

/**
 * Merges the newest entries of each value along the indexes, which reads `limit` rows of all together. For a list of
 * values the planner would read all entries before it sorts.
 */
function newestOf(values: Partial<Record<Key, readonly string[]>>, within: RawBuilder<unknown>, limit: number) {
  const parts = Object.entries(values).flatMap(([key, ofKey]) =>
    ofKey.map(
      (value) => sql`(select id, created_at from ${ENTRIES} where ${KEYS[key as Key]} = ${value} ${within}
        order by created_at desc, id limit ${limit}::integer)`,
    ),
  )
  const none = sql`select id, created_at from ${ENTRIES} where false`
  // A plan for any value would walk the whole log for a rare one.
  return sql`${sql.raw(PLANNED_EACH_TIME)} select distinct on (created_at, id) id, created_at
    from (${parts.length === 0 ? none : sql.join(parts, sql` union all `)}) of_values`
}

function ofAnyAuthor(text: string, within: RawBuilder<unknown>): Found {
  const pattern = containing(text)
  const all = sql`select id, created_at from ${ENTRIES}
    where (payload ->> 'actor_username' ilike ${pattern} or payload ->> 'actor_name' ilike ${pattern}) ${within}`
  return { newest: all, all }
}

/** Users whose present address or name contains the text. */
async function userIds(db: Kysely<DB>, text: string): Promise<string[]> {
  const contained = await containsText(db, text.toLowerCase())
  // A limit of MAX_AUTHORS here would make the planner expect them soon, and read the table for a rare name.
  const { rows } = await sql<{ id: string }>`
    with matching as materialized (
      select id from ${sql.table('users')} where ${contained} limit ${sql.lit(MAX_COUNTED)})
    select id from matching limit ${sql.lit(MAX_AUTHORS + 1)}`.execute(db)
  if (rows.length > MAX_AUTHORS) {
    const message = `author matches more than ${MAX_AUTHORS} users, give a longer part of the address or name`
    throw apiError('validation_failed', { message })
  }
  return rows.map(({ id }) => id)
}
