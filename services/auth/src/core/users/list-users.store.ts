import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import { containing } from '../../db/like.ts'
import type { DB } from '../../db/tables.ts'
import { toUser, type User, userJson } from './users.store.ts'

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

/** Lists a page of users and counts all of them. */
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
 * Reads the ids of a page from an index alone, at any offset (users_aud_created_at_idx), and only then its users. A filter scans every
 * user, so it counts them in the same statement; `total` is undefined without a filter or a row.
 */
async function readPage(db: Kysely<DB>, search: UserSearch, { direction, limit, offset }: PageOfUsers) {
  const counted = search.filter === undefined ? sql<number | null>`null::bigint` : sql<number | null>`count(*) over ()`
  const rows = await db
    .with('page', (qb) =>
      qb
        .selectFrom('users')
        .select(['users.id', 'users.created_at', counted.as('total')])
        .where((eb) => matches(eb, search))
        .orderBy('users.created_at', direction)
        .orderBy('users.id', direction)
        .limit(limit)
        .offset(offset),
    )
    .selectFrom('page')
    .innerJoin('users', 'users.id', 'page.id')
    .select(['page.total', userJson])
    .orderBy('page.created_at', direction)
    .orderBy('page.id', direction)
    .execute()
  return { users: rows.map(({ user }) => toUser(user)), total: rows[0]?.total ?? undefined }
}

async function countUsers(db: Kysely<DB>, search: UserSearch): Promise<number> {
  const { total } = await db
    .selectFrom('users')
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .where((eb) => matches(eb, search))
    .executeTakeFirstOrThrow()
  return total
}

/** Position in the order of creation; the time as PostgreSQL writes it, which is finer than a Date. */
export interface UserPlace {
  createdAt: string
  id: string
}

/** Lists users after a position; the cost does not grow with the distance. */
export async function listUsersAfter(
  db: Kysely<DB>,
  search: UserSearch,
  { direction, limit, after }: { direction: Direction; limit: number; after: UserPlace | undefined },
): Promise<(User & { place: UserPlace })[]> {
  const isLater = (place: UserPlace) => {
    const row = sql`(${sql.ref('users.created_at')}, ${sql.ref('users.id')})`
    const start = sql`(${place.createdAt}::timestamptz, ${place.id}::uuid)`
    return direction === 'asc' ? sql<boolean>`${row} > ${start}` : sql<boolean>`${row} < ${start}`
  }
  const rows = await db
    .selectFrom('users')
    .select(userJson)
    .where((eb) => matches(eb, search))
    .$if(after !== undefined, (query) => query.where(isLater(after as UserPlace)))
    .orderBy('users.created_at', direction)
    .orderBy('users.id', direction)
    .limit(limit)
    .execute()
  return rows.map(({ user }) => ({ ...toUser(user), place: { createdAt: user.created_at, id: user.id } }))
}

function matches(eb: ExpressionBuilder<DB, 'users'>, { aud, filter }: UserSearch) {
  const isOfAudience = eb('users.aud', '=', aud)
  if (filter === undefined) return isOfAudience
  const pattern = containing(filter)
  return isOfAudience.and(
    eb.or([
      eb('users.email', 'like', pattern),
      eb(sql<string>`${sql.ref('users.user_metadata')} ->> 'full_name'`, 'ilike', pattern),
    ]),
  )
}
