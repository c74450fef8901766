import { countedPage, type PageOf, type Total, totalOf } from '@services/common/database/counted-page'
import { jsonb } from '@services/common/database/pool'
import { type Kysely, sql, type Transaction } from 'kysely'
import type { CustomProvider, DB, DiscoveryDocument } from '../../db/tables.ts'

/** Columns that a change may write. */
export type CustomProviderChange = Partial<Omit<CustomProvider, 'id' | 'identifier' | 'provider_type' | 'version'>>

export const findCustomProvider = (db: Kysely<DB>, identifier: string): Promise<CustomProvider | undefined> =>
  db.selectFrom('custom_providers').selectAll().where('identifier', '=', identifier).executeTakeFirst()

/** Lists a page, newest first, and its total. */
export async function listCustomProviders(
  db: Kysely<DB>,
  type: CustomProvider['provider_type'] | undefined,
  page: PageOf,
): Promise<{ rows: CustomProvider[]; total: Total }> {
  const matching = sql`
    select id, created_at from ${sql.table('custom_providers')} ${type ? sql`where provider_type = ${type}` : sql``}`
  const { rows } = await sql<{ total: number } & (CustomProvider | { id: null })>`
    with ${countedPage(matching, sql`created_at desc, id`, page)}
    select counted.total, provider.*
    from counted left join page on true left join ${sql.table('custom_providers')} provider on provider.id = page.id
    order by page.created_at desc, page.id`.execute(db)
  const providers = rows.flatMap(({ total: _, ...provider }) => (provider.id === null ? [] : [provider]))
  return { rows: providers, total: await totalOf(db, matching, page, rows, providers.length) }
}

/** Names of the providers that login pages show. */
export const listShownProviders = (db: Kysely<DB>) =>
  db
    .selectFrom('custom_providers')
    .select(['identifier', 'name'])
    .where('enabled', '=', true)
    .where('listed', '=', true)
    .orderBy('name')
    .orderBy('identifier')
    .execute()

/** Linking rules by identifier, of those that there are. */
export async function linkingRulesOf(
  db: Kysely<DB>,
  identifiers: readonly string[],
): Promise<Record<string, CustomProvider['linking']>> {
  const rows = await db
    .selectFrom('custom_providers')
    .select(['identifier', 'linking'])
    .where('identifier', 'in', identifiers)
    .execute()
  return Object.fromEntries(rows.map(({ identifier, linking }) => [identifier, linking]))
}

export async function countCustomProviders(db: Kysely<DB>): Promise<number> {
  const { count } = await db
    .selectFrom('custom_providers')
    .select(sql<number>`count(*)::integer`.as('count'))
    .executeTakeFirstOrThrow()
  return count
}

/** Makes inserts wait for each other, so that each counts the others. */
export const lockCustomProviders = (trx: Transaction<DB>) =>
  sql`select pg_advisory_xact_lock(hashtextextended('custom_providers', 0))`.execute(trx)

/** False if the identifier is taken. */
export async function insertCustomProvider(trx: Transaction<DB>, provider: CustomProvider): Promise<boolean> {
  const inserted = await trx
    .insertInto('custom_providers')
    .values({ ...provider, ...jsonColumns(provider) })
    .onConflict((conflict) => conflict.column('identifier').doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Undefined if the provider is another version by now, or gone. */
export const changeCustomProvider = (
  trx: Transaction<DB>,
  { id, version }: Pick<CustomProvider, 'id' | 'version'>,
  change: CustomProviderChange,
): Promise<CustomProvider | undefined> =>
  trx
    .updateTable('custom_providers')
    .set({ ...change, ...jsonColumns(change), version: version + 1 })
    .where('id', '=', id)
    .where('version', '=', version)
    .returningAll()
    .executeTakeFirst()

/** Stores a renewed description, unless the provider was changed or a newer one is there. */
export async function renewDescription(
  db: Kysely<DB>,
  { id, version }: Pick<CustomProvider, 'id' | 'version'>,
  found: DiscoveryDocument,
  now: Date,
): Promise<void> {
  await db
    .updateTable('custom_providers')
    .set({ discovery_document: jsonb(found), discovered_at: now })
    .where('id', '=', id)
    .where('version', '=', version)
    .where('discovered_at', '<', now)
    .execute()
}

export const deleteCustomProvider = (
  trx: Transaction<DB>,
  identifier: string,
): Promise<Pick<CustomProvider, 'provider_type'> | undefined> =>
  trx.deleteFrom('custom_providers').where('identifier', '=', identifier).returning('provider_type').executeTakeFirst()

const JSON_COLUMNS = [
  'acceptable_client_ids',
  'scopes',
  'attribute_mapping',
  'custom_claims_allowlist',
  'authorization_params',
  'discovery_document',
] as const

const jsonColumns = (change: CustomProviderChange) =>
  Object.fromEntries(
    JSON_COLUMNS.filter((name) => change[name] !== undefined && change[name] !== null).map((name) => [
      name,
      jsonb(change[name]),
    ]),
  )
