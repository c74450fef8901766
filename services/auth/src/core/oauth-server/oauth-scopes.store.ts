import { jsonb } from '@services/common/database/pool'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { DB, OAuthScopeRow } from '../../db/tables.ts'

export const findOAuthScope = (db: Kysely<DB>, name: string): Promise<OAuthScopeRow | undefined> =>
  db.selectFrom('oauth_scopes').selectAll().where('name', '=', name).executeTakeFirst()

export const lockOAuthScope = (trx: Transaction<DB>, name: string): Promise<OAuthScopeRow | undefined> =>
  trx.selectFrom('oauth_scopes').selectAll().where('name', '=', name).forUpdate().executeTakeFirst()

/** Lists all, which MAX_SCOPES bounds. */
export const listOAuthScopes = (db: Kysely<DB>): Promise<OAuthScopeRow[]> =>
  db.selectFrom('oauth_scopes').selectAll().orderBy('name').execute()

/** Makes inserts wait for each other, so that each counts the others. */
export const lockOAuthScopes = (trx: Transaction<DB>) =>
  sql`select pg_advisory_xact_lock(hashtextextended('oauth_scopes', 0))`.execute(trx)

export async function countOAuthScopes(db: Kysely<DB>): Promise<number> {
  const { count } = await db
    .selectFrom('oauth_scopes')
    .select(sql<number>`count(*)::integer`.as('count'))
    .executeTakeFirstOrThrow()
  return count
}

/** False if the name is taken. */
export async function insertOAuthScope(trx: Transaction<DB>, scope: OAuthScopeRow): Promise<boolean> {
  const inserted = await trx
    .insertInto('oauth_scopes')
    .values({ ...scope, descriptions: jsonb(scope.descriptions), claims: jsonb(scope.claims) })
    .onConflict((conflict) => conflict.column('name').doNothing())
    .returning('name')
    .executeTakeFirst()
  return inserted !== undefined
}

export const changeOAuthScope = (trx: Transaction<DB>, { name, ...scope }: Omit<OAuthScopeRow, 'created_at'>) =>
  trx
    .updateTable('oauth_scopes')
    .set({ ...scope, descriptions: jsonb(scope.descriptions), claims: jsonb(scope.claims) })
    .where('name', '=', name)
    .returningAll()
    .executeTakeFirstOrThrow()

/** False if there is no such scope. */
export async function deleteOAuthScope(trx: Transaction<DB>, name: string): Promise<boolean> {
  const deleted = await trx.deleteFrom('oauth_scopes').where('name', '=', name).returning('name').executeTakeFirst()
  return deleted !== undefined
}
