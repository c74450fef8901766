// Search in the audit log. The one rule: in a large log an index finds the entries of an action or of a user, newest first; only a
// small one is read. Tests: flows/admin/large-tables.test.ts.
import { MAX_COUNTED } from '@services/common/counted-page'
import { PLANNED_EACH_TIME } from '@services/common/database-connection'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import { containing } from '../../db/like.ts'
import type { Position } from '../../db/position.ts'
import { searchReach } from '../../db/search-reach.store.ts'
import { containsText } from '../../db/search-users.store.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { actionsNamed } from './actions.ts'

/** Case-insensitive search for a part of the actor, the action or the log type. */
export interface AuditSearch {
  scope: 'author' | 'action' | 'type'
  text: string
}

/** Users of one search in a large log: each costs a look into the index. */
const MAX_AUTHORS = 100

/** Builds the select of id and time of matching entries, of at least MAX_COUNTED + `limit` if there are as many. */
export async function found(
  db: Kysely<DB>,
  { scope, text }: AuditSearch,
  limit: number,
  after?: Position,
): Promise<RawBuilder<unknown>> {
  const isLater = after ? sql`and ${isOlder(after)}` : sql``
  if (scope !== 'author') return ofActions(actionsNamed(scope, text), isLater, limit)
  const { isLarge } = await searchReach(db, 'audit_log_entries')
  if (!isLarge) return ofAnyAuthor(text, isLater)
  return ofActors({ ids: await userIds(db, text), usernames: [text, text.toLowerCase()] }, isLater, limit)
}

/** Condition for entries that follow a position in a list with the newest first. */
export const isOlder = ({ created_at: time, id }: Position): RawBuilder<unknown> => sql`(
  created_at <= ${time}::timestamptz and (created_at < ${time}::timestamptz or id > ${id}::uuid))`

const ENTRIES = sql.table('audit_log_entries')

/** Merges the newest entries of each action: of a list of actions the planner would read all entries before it sorts. */
function ofActions(actions: readonly string[], isLater: RawBuilder<unknown>, limit: number) {
  const none = sql`select id, created_at from ${ENTRIES} where false`
  const parts = actions.map(
    (action) => sql`(select id, created_at from ${ENTRIES} where payload ->> 'action' = ${action} ${isLater}
      order by created_at desc, id limit ${sql.lit(MAX_COUNTED)} + ${limit}::integer)`,
  )
  // A plan for any action would walk the whole log for a rare one.
  return sql`${sql.raw(PLANNED_EACH_TIME)} select id, created_at from (${parts.length === 0 ? none : sql.join(parts, sql` union all `)}) of_actions`
}

function ofAnyAuthor(text: string, isLater: RawBuilder<unknown>) {
  const pattern = containing(text)
  return sql`select id, created_at from ${ENTRIES}
    where (payload ->> 'actor_username' ilike ${pattern} or payload ->> 'actor_name' ilike ${pattern}) ${isLater}`
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

/** Entries of users, under whatever name, and of exact names: of deleted users and of roles. */
function ofActors(
  { ids, usernames }: { ids: string[]; usernames: string[] },
  isLater: RawBuilder<unknown>,
  limit: number,
) {
  const newest = (key: string, values: string[]) => sql`
    select entry.id, entry.created_at from unnest(${values}::text[]) actor cross join lateral (
      select id, created_at from ${ENTRIES} where payload ->> ${sql.lit(key)} = actor ${isLater}
      order by created_at desc limit ${sql.lit(MAX_COUNTED)} + ${limit}::integer) entry`
  return sql`select id, created_at from (
    ${newest('actor_id', ids)} union ${newest('actor_username', usernames)}) of_actors`
}
