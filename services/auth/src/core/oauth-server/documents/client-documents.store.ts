import type { Kysely, Transaction } from 'kysely'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import type { ClientMetadata } from '../client-metadata.ts'
import { jsonColumns } from '../oauth-clients.store.ts'

export const findDocumentClient = (db: Kysely<DB>, address: string): Promise<OAuthClient | undefined> =>
  db.selectFrom('oauth_clients').selectAll().where('metadata_uri', '=', address).executeTakeFirst()

type Renewal = ClientMetadata & Pick<OAuthClient, 'metadata_fresh_until' | 'metadata_usable_until' | 'updated_at'>

/** Writes what its document says into the client's row; undefined if there is none. */
export const renewDocumentClient = (
  db: Kysely<DB>,
  address: string,
  renewal: Renewal,
): Promise<OAuthClient | undefined> =>
  db
    .updateTable('oauth_clients')
    .set({ ...renewal, ...jsonColumns(renewal) })
    .where('metadata_uri', '=', address)
    .returningAll()
    .executeTakeFirst()

/** Inserts a client; another replica may have done so, whose row then gets this document. */
export const insertDocumentClient = (trx: Transaction<DB>, client: OAuthClient, renewal: Renewal) =>
  trx
    .insertInto('oauth_clients')
    .values({ ...client, ...jsonColumns(client) })
    .onConflict((conflict) => conflict.column('metadata_uri').doUpdateSet({ ...renewal, ...jsonColumns(renewal) }))
    .returningAll()
    .executeTakeFirstOrThrow()
