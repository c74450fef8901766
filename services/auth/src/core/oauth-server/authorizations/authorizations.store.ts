import { jsonb } from '@services/common/database/pool'
import type { Kysely, Transaction } from 'kysely'
import type { Aal, DB, OAuthAuthorization } from '../../../db/tables.ts'
import { UUID } from '../../../db/uuid.ts'
import type { OAuthErrorCode } from '../../../oauth-errors.ts'

type AnswerColumn =
  | ('user_id' | 'session_id' | 'authenticated_at' | 'aal' | 'code_hash' | 'code_expires_at')
  | ('refusal' | 'posted_at' | 'given_session_id')

export type NewAuthorization = Omit<OAuthAuthorization, AnswerColumn>

export const insertAuthorization = (db: Kysely<DB>, request: NewAuthorization) =>
  db
    .insertInto('oauth_authorizations')
    .values({ ...request, scopes: JSON.stringify(request.scopes), resources: JSON.stringify(request.resources) })
    .execute()

/** Text that is no id names no request; PostgreSQL refuses a NUL. */
const known = (id: string): string => (/^[A-Za-z0-9]{32}$/.test(id) ? id : '')

interface Claim {
  id: string
  userId: string
  now: Date
}

/** Ties a request to the first user who sees it; undefined if it is unknown, expired or of another user. */
export const claimAuthorization = (
  db: Kysely<DB>,
  { id, userId, now }: Claim,
): Promise<OAuthAuthorization | undefined> =>
  db
    .updateTable('oauth_authorizations')
    .set({ user_id: userId })
    .where('id', '=', known(id))
    .where('status', '<>', 'pushed')
    .where('expires_at', '>', now)
    .where((eb) => eb.or([eb('user_id', 'is', null), eb('user_id', '=', userId)]))
    .returningAll()
    .executeTakeFirst()

/** Gives a request up to the next user who sees it. */
export const releaseAuthorization = (db: Kysely<DB>, { id, userId }: Omit<Claim, 'now'>) =>
  db
    .updateTable('oauth_authorizations')
    .set({ user_id: null })
    .where('id', '=', known(id))
    .where('user_id', '=', userId)
    .where('status', '=', 'pending')
    .execute()

/** Locks a request that this user has seen; undefined if there is none or it has expired. */
export const lockAuthorization = (
  trx: Transaction<DB>,
  { id, userId, now }: Claim,
): Promise<OAuthAuthorization | undefined> =>
  trx
    .selectFrom('oauth_authorizations')
    .selectAll()
    .where('id', '=', known(id))
    .where('user_id', '=', userId)
    .where('status', '<>', 'pushed')
    .where('expires_at', '>', now)
    .forUpdate()
    .executeTakeFirst()

export interface Approval {
  id: string
  sessionId: string
  authenticatedAt: Date
  aal: Aal
  codeHash: Buffer
  expiresAt: Date
}

export const approveAuthorization = (trx: Transaction<DB>, approval: Approval): Promise<OAuthAuthorization> =>
  trx
    .updateTable('oauth_authorizations')
    .set({
      status: 'approved',
      session_id: approval.sessionId,
      authenticated_at: approval.authenticatedAt,
      aal: approval.aal,
      code_hash: approval.codeHash,
      code_expires_at: approval.expiresAt,
    })
    .where('id', '=', approval.id)
    .returningAll()
    .executeTakeFirstOrThrow()

interface Denial {
  id: string
  /** `error` of the answer. */
  refusal: OAuthErrorCode
  now: Date
  expiresAt: Date
}

/** Undefined if the request is answered already, unknown or expired. */
export const denyAuthorization = (
  trx: Transaction<DB>,
  { id, refusal, now, expiresAt }: Denial,
): Promise<OAuthAuthorization | undefined> =>
  trx
    .updateTable('oauth_authorizations')
    .set({ status: 'denied', refusal, code_expires_at: expiresAt })
    .where('id', '=', known(id))
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

export const findPending = (db: Kysely<DB>, id: string, now: Date): Promise<OAuthAuthorization | undefined> =>
  db
    .selectFrom('oauth_authorizations')
    .selectAll()
    .where('id', '=', known(id))
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .executeTakeFirst()

interface Grant {
  userId: string
  clientId: string
}

export const findConsent = (db: Kysely<DB>, { userId, clientId }: Grant) =>
  db
    .selectFrom('oauth_consents')
    .select(['scopes', 'resources'])
    .where('user_id', '=', userId)
    .where('client_id', '=', clientId)
    .executeTakeFirst()

/** Stores a consent; a narrower one later takes nothing away. With the user's row locked: two are not lost. */
export async function addConsent(
  trx: Transaction<DB>,
  { userId, clientId }: Grant,
  { scopes, resources, now }: { scopes: readonly string[]; resources: readonly string[]; now: Date },
): Promise<void> {
  const before = await findConsent(trx, { userId, clientId })
  const granted = {
    scopes: jsonb([...new Set([...(before?.scopes ?? []), ...scopes])]),
    resources: jsonb([...new Set([...(before?.resources ?? []), ...resources])]),
    updated_at: now,
  }
  await trx
    .insertInto('oauth_consents')
    .values({ user_id: userId, client_id: clientId, created_at: now, ...granted } as never)
    .onConflict((conflict) => conflict.columns(['user_id', 'client_id']).doUpdateSet(granted as never))
    .execute()
}

/** Takes an answer that a page posts; undefined after the first time, and once it has expired. */
export const takePosting = (db: Kysely<DB>, id: string, now: Date): Promise<OAuthAuthorization | undefined> =>
  db
    .updateTable('oauth_authorizations')
    .set({ posted_at: now })
    .where('id', '=', id)
    .where('response_mode', '=', 'form_post')
    .where('posted_at', 'is', null)
    .where('code_expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

/** Begins a pushed request of this client, once; undefined if it is unknown, expired or begun. */
export const takePushed = (
  db: Kysely<DB>,
  { id, clientId, now, expiresAt }: { id: string; clientId: string; now: Date; expiresAt: Date },
): Promise<OAuthAuthorization | undefined> =>
  db
    .updateTable('oauth_authorizations')
    .set({ status: 'pending', created_at: now, expires_at: expiresAt })
    .where('id', '=', known(id))
    .where('client_id', '=', clientId)
    .where('status', '=', 'pushed')
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

/** Finds the row's id of a client by the id that users see. */
export async function findKnownClientId(db: Kysely<DB>, publicId: string): Promise<string | undefined> {
  const column = UUID.test(publicId) ? 'id' : 'metadata_uri'
  const found = await db.selectFrom('oauth_clients').select('id').where(column, '=', publicId).executeTakeFirst()
  return found?.id
}
