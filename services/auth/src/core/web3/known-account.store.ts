import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

/**
 * Returns the stored spelling of an account, which is given in lower case: imported addresses of Ethereum keep their
 * capitals, which are only a checksum. undefined: unknown.
 */
export async function findSpelling(db: Kysely<DB>, account: string): Promise<string | undefined> {
  // Literal, for the partial index.
  const { rows } = await sql<{ provider_id: string }>`
    select provider_id from ${sql.table('identities')}
    where provider = 'web3' and lower(provider_id) = ${account}
    order by provider_id = ${account} desc, created_at limit 1`.execute(db)
  return rows[0]?.provider_id
}
