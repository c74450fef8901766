import type { Kysely } from 'kysely'
import type { DB } from '../../../db/tables.ts'

/** Finds the request of a code that gave nothing. */
export const findCode = (db: Kysely<DB>, hash: Buffer) =>
  db
    .selectFrom('oauth_authorizations')
    .select(['client_id', 'user_id', 'redirect_uri', 'code_challenge', 'dpop_thumbprint'])
    .select(['resources', 'given_session_id'])
    .where('code_hash', '=', hash)
    .executeTakeFirst()

export type FoundCode = NonNullable<Awaited<ReturnType<typeof findCode>>>
