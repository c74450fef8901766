import { expressionBuilder, type Kysely, sql } from 'kysely'
import { containing } from '../../db/like.ts'
import type { Position } from '../../db/position.ts'
import type { DB } from '../../db/tables.ts'
import { toUser, type User, type UserJson, userJson } from './users.store.ts'

export type Direction = 'asc' | 'desc'

export interface UserSearch {
  aud: string
  /** Part of an e-mail address, or of a full name in any case. */
  filter?: string | undefined
}

interface PageOfUsers {
  direction: Direction
  limit: number
  offset: number
}

export async function listUsers(
  db: Kysely<DB>,
  search: UserSearch,
  page: PageOfUsers,
): Promise<{ users: User[]; total: number }> {
  if (search.filter === undefined) {
    const total = await countUsers(db, search)
    return { users: page.offset < total ? (await readPage(db, search, page)).users : [], total }
  }
  const { users, total } = await readPage(db, search, page)
  return { users, total: total ?? (page.offset > 0 ? await countUsers(db, search) : 0) }
}

/**
 * Reads the ids of a page from an index only, at any offset (users_aud_created_at_idx), and then its users. A filter
 * scans every user, so the same statement counts them; `total` is undefined without a filter or a row.
 */
async function readPage(db: Kysely<DB>, search: UserSearch, { direction, limit, offset }: PageOfUsers) {
  const order = sql.raw(direction)
  const { rows } = await sql<{ total: number | null; user: UserJson }>`
    with page as (
      select id, created_at, ${search.filter === undefined ? sql`null::bigint` : sql`count(*) over ()`} as total
      from ${sql.table('users')} where ${matches(search)}
      order by created_at ${order}, id ${order} limit ${limit} offset ${offset}
    )
    select page.total, ${userJson(expressionBuilder<DB, 'users'>())}
    from page join ${sql.table('users')} on ${sql.ref('users.id')} = page.id
    order by page.created_at ${order}, page.id ${order}`.execute(db)
  return { users: rows.map(({ user }) => toUser(user)), total: rows[0]?.total ?? undefined }
}

async function countUsers(db: Kysely<DB>, search: UserSearch): Promise<number> {
  const { total } = await db
    .selectFrom('users')
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .where(matches(search))
    .executeTakeFirstOrThrow()
  return total
}

/** Lists users after a position; the cost does not grow with the distance. */
export async function listUsersAfter(
  db: Kysely<DB>,
  search: UserSearch,
  { direction, limit, after }: { direction: Direction; limit: number; after: Position | undefined },
): Promise<(User & { position: Position })[]> {
  const start = after && sql`(${after.created_at}::timestamptz, ${after.id}::uuid)`
  const isLater = start && sql`and (created_at, id) ${sql.raw(direction === 'asc' ? '>' : '<')} ${start}`
  const rows = await db
    .selectFrom('users')
    .select(userJson)
    .where(sql<boolean>`${matches(search)} ${isLater ?? sql``}`)
    .orderBy('users.created_at', direction)
    .orderBy('users.id', direction)
    .limit(limit)
    .execute()
  return rows.map(({ user }) => ({ ...toUser(user), position: { created_at: user.created_at, id: user.id } }))
}

function matches({ aud, filter }: UserSearch) {
  if (filter === undefined) return sql<boolean>`aud = ${aud}`
  const pattern = containing(filter)
  return sql<boolean>`aud = ${aud} and (email like ${pattern} or user_metadata ->> 'full_name' ilike ${pattern})`
}
