import { countedPage, type PageOf, scannedPage, type Total, totalOf } from '@services/common/database/counted-page'
import { prepared } from '@services/common/database/prepared-statement'
import { type Kysely, type RawBuilder, sql } from 'kysely'
import type { Position } from '../../db/position.ts'
import { containsText } from '../../db/search-users.store.ts'
import type { DB } from '../../db/tables.ts'
import { IDENTITY_COLUMNS, type IdentityJson, USER_COLUMNS, type UserJson } from './users.store.ts'

export type Direction = 'asc' | 'desc'

export interface UserSearch {
  aud: string
  /** Part of an address, number or full name, in any case (search-users.store.ts). */
  filter?: string | undefined
}

/** A user as PostgreSQL's text has it: lists of Dates cost more than the rest of their answer. */
export type ListedUser = UserJson

type Identified = { [Column in keyof IdentityJson as `identity_${Column}`]: IdentityJson[Column] }
/** A user with one of the identities. */
type UserRow = Omit<UserJson, 'identities'> & (Identified | { identity_id: null })
/** An empty page has the total in a row without a user. */
type PageRow = { total: number } & (UserRow | { id: null })

/** Lists a page and its total in one statement, prepared unless a filter makes its plan depend on the text. */
export async function listUsers(
  db: Kysely<DB>,
  search: UserSearch,
  direction: Direction,
  page: PageOf,
): Promise<{ rows: ListedUser[]; total: Total }> {
  const found = await matching(db, search)
  const rows =
    search.filter === undefined
      ? await selectPage[direction](db, { aud: search.aud, ...page })
      : (await usersOn(scannedPage(found, orderBy('', direction), page), direction).execute(db)).rows
  const users = usersOf(rows)
  return { rows: users, total: await totalOf(db, found, page, rows, users.length) }
}

/** Reads the ids of a page from an index only, at any offset (users_aud_created_at_idx). */
const preparedPage = (direction: Direction) =>
  prepared((_: Kysely<DB>, page: { aud: string } & PageOf) =>
    usersOn(countedPage(ofAudience(page.aud), orderBy('', direction), page), direction),
  )
const selectPage = { asc: preparedPage('asc'), desc: preparedPage('desc') }

/** Lists users after a position, at a cost that does not grow with it; `next` is the last one's, if more follow. */
export async function listUsersAfter(
  db: Kysely<DB>,
  search: UserSearch,
  { direction, limit, after }: { direction: Direction; limit: number; after: Position | undefined },
): Promise<{ users: ListedUser[]; next: Position | undefined }> {
  const start = after && sql`(${after.created_at}::timestamptz, ${after.id}::uuid)`
  const isLater = start ? sql`and (created_at, id) ${sql.raw(direction === 'asc' ? '>' : '<')} ${start}` : sql``
  const { rows } = await sql<UserRow & { place: string }>`
    with page as (${await matching(db, search)} ${isLater} order by ${orderBy('', direction)} limit ${limit + 1})
    select to_json(page.created_at) #>> '{}' as place, ${COLUMNS} from page ${JOINED}
    order by ${orderBy('page.', direction)}, i.created_at, i.provider`.execute(db)
  const found = usersOf(rows)
  const users = found.slice(0, limit)
  const last = found.length > limit ? users.at(-1) : undefined
  return { users, next: last && { created_at: last.place, id: last.id } }
}

const usersOn = (countedPage: RawBuilder<unknown>, direction: Direction) => sql<PageRow>`
  with ${countedPage}
  select counted.total, ${COLUMNS} from counted left join page on true ${JOINED}
  order by ${orderBy('page.', direction)}, i.created_at, i.provider`

const JOINED = sql`
  left join ${sql.table('users')} u on u.id = page.id left join ${sql.table('identities')} i on i.user_id = page.id`
const orderBy = (prefix: string, direction: Direction) =>
  sql.raw(`${prefix}created_at ${direction}, ${prefix}id ${direction}`)

const asText = (column: string) => (/_(at|until)$/.test(column) ? `${column}::text` : column)
const COLUMNS = sql.raw(
  [
    ...USER_COLUMNS.map((column) => asText(`u.${column}`)),
    'u.password_hash is not null as has_password',
    ...IDENTITY_COLUMNS.map((column) => `${asText(`i.${column}`)} as identity_${column}`),
  ].join(', '),
)

function usersOf<Row extends UserRow>(rows: (Row | { id: null })[]) {
  const users: (Row & { identities: IdentityJson[] })[] = []
  for (const row of rows) {
    if (row.id === null) continue
    const last = users.at(-1)
    const user = last?.id === row.id ? last : { ...row, identities: [] }
    if (user !== last) users.push(user)
    if (row.identity_id !== null) user.identities.push(identityOf(row))
  }
  return users
}

const identityOf = (row: Identified): IdentityJson => ({
  id: row.identity_id,
  provider_id: row.identity_provider_id,
  user_id: row.identity_user_id,
  identity_data: row.identity_identity_data,
  provider: row.identity_provider,
  last_sign_in_at: row.identity_last_sign_in_at,
  created_at: row.identity_created_at,
  updated_at: row.identity_updated_at,
  email: row.identity_email,
})

const ofAudience = (aud: string) => sql`select id, created_at from ${sql.table('users')} where aud = ${aud}`

const matching = async (db: Kysely<DB>, { aud, filter }: UserSearch) =>
  filter === undefined ? ofAudience(aud) : sql`${ofAudience(aud)} and ${await containsText(db, filter)}`
