import { prepared } from '@services/common/database/prepared-statement'
import type { Kysely } from 'kysely'
import type { DB } from '../../../db/tables.ts'

const select = prepared((db: Kysely<DB>, { hash }: { hash: Buffer }) =>
  db
    .selectFrom('oauth_authorizations')
    .select(['client_id', 'user_id', 'redirect_uri', 'code_challenge', 'dpop_thumbprint', 'nonce'])
    .select(['scopes', 'resources', 'code_expires_at', 'given_session_id'])
    .where('code_hash', '=', hash),
)

export type FoundCode = Awaited<ReturnType<typeof select>>[number]

export const findCode = async (db: Kysely<DB>, hash: Buffer): Promise<FoundCode | undefined> =>
  (await select(db, { hash }))[0]
