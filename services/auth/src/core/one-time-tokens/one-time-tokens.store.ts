import { deleteBatch } from '@services/common/database'
import { expressionBuilder, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import { insertForNobody } from '../../db/nobody.store.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { deleteOldLinks, isStillGood, keepLink, linksWith, TAKEN } from './earlier-links.store.ts'
import type { Pkce } from './pkce.ts'

export interface NewOneTimeToken {
  userId: string
  purpose: TokenPurpose
  relatesTo: string
  tokenHash: Buffer | null
  codeHash: Buffer
  /** Following the link gives a code for this challenge instead of a session. */
  pkce: Pkce | undefined
  /** Sent for a request that says what the account shall have, see core/users/claims.ts. */
  isClaim: boolean
  /** The work is done and nothing changes: there may be a live token. */
  isPretended: boolean
  /** Codes that died of wrong attempts since the last one that was used. */
  usedUpCodes: number
  /** The code is too long to be guessed: no number of wrong attempts ends it. */
  isLong: boolean
  expiresAt: Date
  now: Date
}

/** `attempts` of a long code, which stays below zero. The version before counts it up, and would need 32,773 to end it. */
const UNLIMITED = -32_768

/** Wrong attempts at the user's code of this purpose, and how many codes before it died of theirs. */
export function findAttempts(trx: Transaction<DB>, userId: string, purpose: TokenPurpose) {
  return trx
    .selectFrom('one_time_tokens')
    .select(['attempts', 'used_up_codes'])
    .where('user_id', '=', userId)
    .where('purpose', '=', purpose)
    .executeTakeFirst()
}

/**
 * Replaces the user's live token of this purpose. Its link stays good where the new one cannot stand in for it: a link with a
 * code challenge serves only the browser that asked, and anybody may ask. Where none is kept a row is written too, or a second
 * request would cost less where nobody has the address.
 */
export async function putOneTimeToken(trx: Transaction<DB>, token: NewOneTimeToken): Promise<void> {
  const challenge = token.pkce?.challenge ?? null
  const values = {
    relates_to: token.relatesTo,
    token_hash: token.tokenHash,
    code_hash: token.codeHash,
    attempts: token.isLong ? UNLIMITED : 0,
    used_up_codes: token.usedUpCodes,
    code_challenge: challenge,
    code_challenge_method: token.pkce?.method ?? null,
    // Asking for another link must not undo what the replaced one was for.
    ...(token.isClaim ? { sets_password: true } : {}),
    expires_at: token.expiresAt,
    created_at: token.now,
  }
  const isOf = { user_id: token.userId, purpose: token.purpose }
  await trx
    .with('kept', (qb) =>
      keepLink(qb, { ...isOf, relates_to: token.relatesTo }, challenge, !token.isPretended).returning('user_id'),
    )
    .with('not_kept', (qb) =>
      insertForNobody(qb, `earlier ${token.userId} ${token.purpose}`, token.now, sql`not exists (select from kept)`),
    )
    .with('too_old', (qb) => deleteOldLinks(qb, isOf, token.now))
    .insertInto('one_time_tokens')
    .values({ ...isOf, ...values })
    .onConflict((conflict) =>
      conflict.columns(['user_id', 'purpose']).doUpdateSet(token.isPretended ? { purpose: token.purpose } : values),
    )
    .execute()
}

/** Whose link it is, so that the user can be locked before the token. */
export async function findUserIdByLinkHash(db: Kysely<DB>, tokenHash: Buffer, purposes: readonly TokenPurpose[]) {
  const found = await linksWith(db, tokenHash, purposes).executeTakeFirst()
  return found?.user_id
}

export type TakenToken = Pick<Selectable<DB['one_time_tokens']>, (typeof TAKEN)[number]>

/**
 * Takes the token of a link away, with the other links of its purpose: whoever gets the row is the one who used it. Expired ones
 * are returned too.
 */
export function takeByLinkHash(trx: Transaction<DB>, tokenHash: Buffer, purposes: readonly TokenPurpose[]) {
  return trx
    .with('link', (qb) => linksWith(qb, tokenHash, purposes))
    .with('taken', (qb) =>
      qb
        .deleteFrom('one_time_tokens')
        .using('link')
        .whereRef('one_time_tokens.user_id', '=', 'link.user_id')
        .whereRef('one_time_tokens.purpose', '=', 'link.purpose')
        .returning('one_time_tokens.user_id'),
    )
    .selectFrom('link')
    .innerJoin('taken', 'taken.user_id', 'link.user_id')
    .selectAll('link')
    .executeTakeFirst()
}

/**
 * Counts one try at the codes sent to an address for these purposes and returns those that still had a try left. Counting
 * comes before comparing, outside the flow's transaction, so that parallel guesses cannot share one try. Where there is
 * nothing to guess at a row is written too: a write that must reach the disk takes longer than a look, which would tell
 * whose code is under way. A guess at a long code writes that row too.
 */
export function countAttempt(db: Kysely<DB>, { address, audience, purposes, now }: Guess, maxAttempts: number) {
  return db
    .with('tried', (qb) =>
      qb
        .updateTable('one_time_tokens')
        .from('users')
        .set((eb) => ({ attempts: eb('attempts', '+', 1) }))
        .whereRef('users.id', '=', 'one_time_tokens.user_id')
        .where('users.aud', '=', audience)
        .where('relates_to', '=', address)
        .where('purpose', 'in', purposes)
        .where('attempts', '>=', 0)
        .where('attempts', '<', maxAttempts)
        .returning(['user_id', 'purpose', 'relates_to', 'code_hash', 'expires_at']),
    )
    .with('missed', (qb) =>
      insertForNobody(qb, `verify ${audience} ${address}`, now, sql`not exists (select from tried)`),
    )
    .selectFrom('tried')
    .select(['user_id', 'purpose', 'relates_to', 'code_hash', 'expires_at'])
    .unionAll((qb) =>
      qb
        .selectFrom('one_time_tokens')
        .innerJoin('users', 'users.id', 'one_time_tokens.user_id')
        .select(['user_id', 'purpose', 'relates_to', 'code_hash', 'expires_at'])
        .where('users.aud', '=', audience)
        .where('relates_to', '=', address)
        .where('purpose', 'in', purposes)
        .where('attempts', '<', 0),
    )
    .execute()
}

interface Guess {
  address: string
  audience: string
  purposes: readonly TokenPurpose[]
  now: Date
}

/** The same for a code only its user can use. */
export function countAttemptOfUser(db: Kysely<DB>, userId: string, purpose: TokenPurpose, maxAttempts: number) {
  return db
    .updateTable('one_time_tokens')
    .set((eb) => ({
      attempts: eb
        .case()
        .when('attempts', '<', 0)
        .then(UNLIMITED)
        .else(eb('attempts', '+', 1))
        .end(),
    }))
    .where('user_id', '=', userId)
    .where('purpose', '=', purpose)
    .where('attempts', '<', maxAttempts)
    .returning(['purpose', 'relates_to', 'code_hash', 'expires_at'])
    .executeTakeFirst()
}

type Place = 'newest' | 'earlier'

/**
 * A link or code counts from when its mail leaves: one that waited for a mail server is as good as any. Returns which it is: the
 * newest of its purpose, an earlier link whose code is dead, or undefined where it was used or ended meanwhile, and the mail is
 * not worth sending; a row is written all the same. It is found by its link's hash, or by its code's where there is no link.
 */
export async function restartLifetime(
  db: Kysely<DB>,
  userId: string,
  { by, hash }: { by: 'token_hash' | 'code_hash'; hash: Buffer },
  { expiresAt, now }: { expiresAt: Date; now: Date },
): Promise<Place | undefined> {
  const restarted = await db
    .with('newest', (qb) =>
      qb
        .updateTable('one_time_tokens')
        .set({ expires_at: expiresAt })
        .where('user_id', '=', userId)
        .where(by, '=', hash)
        .returning(sql.lit<Place>('newest').as('place')),
    )
    .with('earlier', (qb) =>
      qb
        .updateTable('earlier_links')
        .set({ expires_at: expiresAt })
        .where('user_id', '=', userId)
        .where('token_hash', '=', hash)
        .returning(sql.lit<Place>('earlier').as('place')),
    )
    .with('not_restarted', (qb) => {
      const isNobody = sql<boolean>`not exists (select from newest) and not exists (select from earlier)`
      return insertForNobody(qb, `restart ${hash.toString('base64')}`, now, isNobody)
    })
    .selectFrom('newest')
    .select('place')
    .unionAll((qb) => qb.selectFrom('earlier').select('place'))
    .executeTakeFirst()
  return restarted?.place
}

/** Takes a code's token away after its hash matched; undefined: somebody else used it first. */
export function takeByCodeHash(trx: Transaction<DB>, userId: string, purpose: TokenPurpose, codeHash: Buffer) {
  return trx
    .deleteFrom('one_time_tokens')
    .where('user_id', '=', userId)
    .where('purpose', '=', purpose)
    .where('code_hash', '=', codeHash)
    .returning(TAKEN)
    .executeTakeFirst()
}

/** Whether the user has a link or code of these purposes that has not expired. */
export async function hasLiveToken(
  db: Kysely<DB>,
  userId: string,
  purposes: readonly TokenPurpose[],
  now: Date,
): Promise<boolean> {
  const found = await db
    .selectFrom('one_time_tokens')
    .select('user_id')
    .where('user_id', '=', userId)
    .where('purpose', 'in', purposes)
    .where(isStillGood(now))
    .executeTakeFirst()
  return found !== undefined
}

/** All of a user's, or those of some purposes. */
export async function deleteOneTimeTokens(
  trx: Transaction<DB>,
  userId: string,
  purposes?: readonly TokenPurpose[],
): Promise<void> {
  const all = trx.deleteFrom('one_time_tokens').where('user_id', '=', userId)
  await (purposes ? all.where('purpose', 'in', purposes) : all).execute()
}

/** Housekeeping: rows that no link or code uses any more. Those of a user with a failed message live again with that. */
export function deleteExpiredTokens(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  const condition = sql`not ${isStillGood(before)(expressionBuilder<DB, 'one_time_tokens'>())} and not exists (
    select from ${sql.table('messages')} message
    where message.user_id = ${sql.table('one_time_tokens')}.user_id and message.state = 'failed')`
  return deleteBatch(db, 'one_time_tokens', condition, limit)
}
