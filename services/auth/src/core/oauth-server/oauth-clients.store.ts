import { countedPage, type PageOf, type Total, totalOf } from '@services/common/database/counted-page'
import { jsonb } from '@services/common/database/pool'
import { prepared } from '@services/common/database/prepared-statement'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB, OAuthClient } from '../../db/tables.ts'

/** Columns that a change may write. */
export type OAuthClientChange = Partial<Omit<OAuthClient, 'id' | 'client_type' | 'registration_type' | 'created_at'>>

export const findOAuthClient = (db: Kysely<DB>, id: string): Promise<OAuthClient | undefined> =>
  db.selectFrom('oauth_clients').selectAll().where('id', '=', id).executeTakeFirst()

/** Finds several clients in one statement, in the given order. Requests for one client share its row. */
export async function findOAuthClients(db: Kysely<DB>, ids: readonly string[]): Promise<(OAuthClient | undefined)[]> {
  const rows = await selectClients(db, { ids: [...new Set(ids.map((id) => id.toLowerCase()))] })
  const found = new Map(rows.map((row) => [row.id, row]))
  return ids.map((id) => found.get(id.toLowerCase()))
}

const selectClients = prepared((db: Kysely<DB>, { ids }: { ids: string[] }) =>
  db.selectFrom('oauth_clients').selectAll().where('id', '=', sql<string>`any((select ${ids}::uuid[])::uuid[])`),
)

export const lockOAuthClient = (trx: Transaction<DB>, id: string): Promise<OAuthClient | undefined> =>
  trx.selectFrom('oauth_clients').selectAll().where('id', '=', id).forUpdate().executeTakeFirst()

/** Lists a page, newest first, and its total. */
export async function listOAuthClients(db: Kysely<DB>, page: PageOf): Promise<{ rows: OAuthClient[]; total: Total }> {
  const matching = sql`select id, created_at from ${sql.table('oauth_clients')}`
  const { rows } = await sql<{ total: number } & (OAuthClient | { id: null })>`
    with ${countedPage(matching, sql`created_at desc, id`, page)}
    select counted.total, client.*
    from counted left join page on true left join ${sql.table('oauth_clients')} client on client.id = page.id
    order by page.created_at desc, page.id`.execute(db)
  const clients = rows.flatMap(({ total: _, ...client }) => (client.id === null ? [] : [client]))
  return { rows: clients, total: await totalOf(db, matching, page, rows, clients.length) }
}

export const insertOAuthClient = (trx: Transaction<DB>, client: OAuthClient) =>
  trx
    .insertInto('oauth_clients')
    .values({ ...client, ...jsonColumns(client) })
    .execute()

export const changeOAuthClient = (trx: Transaction<DB>, id: string, change: OAuthClientChange): Promise<OAuthClient> =>
  trx
    .updateTable('oauth_clients')
    .set({ ...change, ...jsonColumns(change) })
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirstOrThrow()

/** Longest age of a recorded use: a row is written once a day, not with each token. */
const USE_RECORDED_MS = 86_400_000

/** Records that a client gets tokens. Registrations without an administrator are deleted after 30 days without one. */
export async function touchClient(
  db: Kysely<DB>,
  { id, last_used_at: before }: Pick<OAuthClient, 'id' | 'last_used_at'>,
  now: Date,
): Promise<void> {
  const due = new Date(now.getTime() - USE_RECORDED_MS)
  if (before !== null && before > due) return
  await db
    .updateTable('oauth_clients')
    .set({ last_used_at: now })
    .where('id', '=', id)
    .where((eb) => eb.or([eb('last_used_at', 'is', null), eb('last_used_at', '<=', due)]))
    .execute()
}

/** False if there is no such client. */
export async function deleteOAuthClient(trx: Transaction<DB>, id: string): Promise<boolean> {
  const deleted = await trx.deleteFrom('oauth_clients').where('id', '=', id).returning('id').executeTakeFirst()
  return deleted !== undefined
}

const JSON_COLUMNS = [
  ...(['redirect_uris', 'post_logout_redirect_uris', 'grant_types', 'contacts', 'introspects', 'jwks'] as const),
]

/** Encodes the columns of JSON. */
export const jsonColumns = (change: OAuthClientChange) =>
  Object.fromEntries(
    JSON_COLUMNS.filter((name) => change[name] !== undefined && change[name] !== null).map((name) => [
      name,
      jsonb(change[name]),
    ]),
  )
