import { deleteBatch } from '@services/common/database'
import { type Kysely, type QueryCreator, type Selectable, sql, type Transaction } from 'kysely'
import type { Pkce } from '../auth-codes/pkce.ts'
import { insertForNobody } from '../db/nobody.store.ts'
import type { DB, TokenPurpose } from '../db/tables.ts'

export interface NewOneTimeToken {
  userId: string
  purpose: TokenPurpose
  relatesTo: string
  tokenHash: Buffer | null
  codeHash: Buffer
  /** Following the link gives a code for this challenge instead of a session. */
  pkce: Pkce | undefined
  /** Sent for a request that says what the account shall have, see ../users/claims.ts. */
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

/** Replaced links are kept for as long as a mail may wait for its server, which restarts their lifetime. */
const KEEP_EARLIER_MS = 2 * 86_400_000

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
      qb
        .insertInto('earlier_links')
        .columns(['token_hash', ...TAKEN])
        .expression(
          qb
            .selectFrom('one_time_tokens')
            .select((eb) => [eb.ref('token_hash').$notNull().as('token_hash'), ...TAKEN])
            .where((eb) => eb.and({ ...isOf, relates_to: token.relatesTo }))
            .where('token_hash', 'is not', null)
            .where('code_challenge', 'is distinct from', challenge)
            .where(sql.lit(!token.isPretended)),
        )
        .returning('user_id'),
    )
    .with('not_kept', (qb) =>
      insertForNobody(qb, `earlier ${token.userId} ${token.purpose}`, token.now, sql`not exists (select from kept)`),
    )
    .with('too_old', (qb) =>
      qb
        .deleteFrom('earlier_links')
        .where((eb) => eb.and(isOf))
        .where('expires_at', '<', new Date(token.now.getTime() - KEEP_EARLIER_MS)),
    )
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

const TAKEN = [
  'user_id',
  'purpose',
  'relates_to',
  'expires_at',
  'code_challenge',
  'code_challenge_method',
  'sets_password',
] as const

export type TakenToken = Pick<Selectable<DB['one_time_tokens']>, (typeof TAKEN)[number]>

/** The link with this hash, the newest of its purpose or an earlier one. */
const linksWith = (db: QueryCreator<DB>, tokenHash: Buffer, purposes: readonly TokenPurpose[]) =>
  db
    .selectFrom('one_time_tokens')
    .select(TAKEN)
    .where('token_hash', '=', tokenHash)
    .where('purpose', 'in', purposes)
    .unionAll(
      db.selectFrom('earlier_links').select(TAKEN).where('token_hash', '=', tokenHash).where('purpose', 'in', purposes),
    )

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

type KeptLink = TakenToken & { token_hash: Buffer }

/** The other links of a user for these purposes. */
export function linksBeside(
  trx: Transaction<DB>,
  userId: string,
  purposes: readonly TokenPurpose[],
  tokenHash: Buffer,
): Promise<KeptLink[]> {
  return trx
    .selectFrom('one_time_tokens')
    .select((eb) => [eb.ref('token_hash').$notNull().as('token_hash'), ...TAKEN])
    .where('user_id', '=', userId)
    .where('purpose', 'in', purposes)
    .where('token_hash', '!=', tokenHash)
    .unionAll(
      trx
        .selectFrom('earlier_links')
        .select(['token_hash', ...TAKEN])
        .where('user_id', '=', userId)
        .where('purpose', 'in', purposes)
        .where('token_hash', '!=', tokenHash),
    )
    .orderBy('expires_at', 'desc')
    .execute()
}

/** Puts links back whose tokens have ended; their codes, which could be guessed, stay dead. */
export async function putLinksBack(
  trx: Transaction<DB>,
  [newest, ...earlier]: readonly KeptLink[],
  now: Date,
): Promise<void> {
  if (!newest) return
  await trx
    .insertInto('one_time_tokens')
    .values({ ...newest, code_hash: null, created_at: now })
    .execute()
  if (earlier.length > 0) await trx.insertInto('earlier_links').values(earlier).execute()
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

/**
 * A link or code counts from when its mail leaves: one that waited for a mail server is as good as any. False when the
 * token was used or replaced meanwhile, and the mail is not worth sending; a row is written all the same. It is found by its
 * link's hash, or by its code's where there is no link.
 */
export async function restartLifetime(
  db: Kysely<DB>,
  userId: string,
  { by, hash }: { by: 'token_hash' | 'code_hash'; hash: Buffer },
  { expiresAt, now }: { expiresAt: Date; now: Date },
): Promise<boolean> {
  const restarted = await db
    .with('newest', (qb) =>
      qb
        .updateTable('one_time_tokens')
        .set({ expires_at: expiresAt })
        .where('user_id', '=', userId)
        .where(by, '=', hash)
        .returning('user_id'),
    )
    .with('earlier', (qb) =>
      qb
        .updateTable('earlier_links')
        .set({ expires_at: expiresAt })
        .where('user_id', '=', userId)
        .where('token_hash', '=', hash)
        .returning('user_id'),
    )
    .with('not_restarted', (qb) => {
      const isNobody = sql<boolean>`not exists (select from newest) and not exists (select from earlier)`
      return insertForNobody(qb, `restart ${hash.toString('base64')}`, now, isNobody)
    })
    .selectFrom('newest')
    .select('user_id')
    .unionAll((qb) => qb.selectFrom('earlier').select('user_id'))
    .executeTakeFirst()
  return restarted !== undefined
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
    .where('expires_at', '>', now)
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

/** Housekeeping: rows that can no longer be used by anybody. Those of a user with a failed message live again with that. */
export function deleteExpiredTokens(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  const condition = sql`expires_at < ${before} and not exists (
    select from ${sql.table('messages')} message
    where message.user_id = ${sql.table('one_time_tokens')}.user_id and message.state = 'failed')`
  return deleteBatch(db, 'one_time_tokens', condition, limit)
}
