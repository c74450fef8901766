import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import { containing } from '../db/like.ts'
import type { DB } from '../db/tables.ts'
import { toUser, type User, userJson } from './users.store.ts'

export type Direction = 'asc' | 'desc'

export interface UserSearch {
  aud: string
  /** Part of an e-mail address, or of a full name in whatever case. */
  filter?: string | undefined
}

/**
 * The ids of a page come from an index alone, whatever the offset (users_aud_created_at_idx); only the page's own users
 * are read and put together.
 */
export async function listUsers(
  db: Kysely<DB>,
  { aud, filter }: UserSearch,
  { direction, limit, offset }: { direction: Direction; limit: number; offset: number },
): Promise<User[]> {
  const rows = await db
    .with('page', (qb) =>
      qb
        .selectFrom('users')
        .select(['users.id', 'users.created_at'])
        .where('users.aud', '=', aud)
        .$if(filter !== undefined, (query) => query.where((eb) => matches(eb, filter as string)))
        .orderBy('users.created_at', direction)
        .orderBy('users.id', direction)
        .limit(limit)
        .offset(offset),
    )
    .selectFrom('page')
    .innerJoin('users', 'users.id', 'page.id')
    .select(userJson)
    .orderBy('page.created_at', direction)
    .orderBy('page.id', direction)
    .execute()
  return rows.map(({ user }) => toUser(user))
}

/** Exact: an index-only scan without a filter, a scan of the table with one. */
export async function countUsers(db: Kysely<DB>, { aud, filter }: UserSearch): Promise<number> {
  const { total } = await db
    .selectFrom('users')
    .select((eb) => eb.fn.countAll<number>().as('total'))
    .where('users.aud', '=', aud)
    .$if(filter !== undefined, (query) => query.where((eb) => matches(eb, filter as string)))
    .executeTakeFirstOrThrow()
  return total
}

/** A place in the order of creation; the time as PostgreSQL writes it, which is finer than a Date. */
export interface UserPlace {
  createdAt: string
  id: string
}

/** Users after a place, for walking through all of them; the cost does not grow with the distance. */
export async function listUsersAfter(
  db: Kysely<DB>,
  { aud, filter }: UserSearch,
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
    .where('users.aud', '=', aud)
    .$if(filter !== undefined, (query) => query.where((eb) => matches(eb, filter as string)))
    .$if(after !== undefined, (query) => query.where(isLater(after as UserPlace)))
    .orderBy('users.created_at', direction)
    .orderBy('users.id', direction)
    .limit(limit)
    .execute()
  return rows.map(({ user }) => ({ ...toUser(user), place: { createdAt: user.created_at, id: user.id } }))
}

function matches(eb: ExpressionBuilder<DB, 'users'>, filter: string) {
  const pattern = containing(filter)
  return eb.or([
    eb('users.email', 'like', pattern),
    eb(sql<string>`${sql.ref('users.user_metadata')} ->> 'full_name'`, 'ilike', pattern),
  ])
}
