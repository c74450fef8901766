import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { expressionBuilder, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import { insertDecoy } from '../../db/decoy-rows.store.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { deleteOldLinks, isStillGood, keepLink, linksWith, TAKEN } from './earlier-links.store.ts'
import type { Pkce } from './pkce.ts'

export interface NewOneTimeToken {
  userId: string
  purpose: TokenPurpose
  /** Address of the message; the code is valid for this address only. */
  relatesTo: string
  tokenHash: Buffer | null
  codeHash: Buffer
  /** null: a fixed code, which ends with its setting (right-code.ts). */
  codeSeed: Buffer | null
  /** Following the link gives a code for this challenge instead of a session. */
  pkce?: Pkce | undefined
  /** Sent for a request with a claim, see ../users/address-claims.ts. */
  isClaim?: boolean | undefined
  /** Sealed account at a provider; a token without one ends that of the replaced token. */
  externalAccount?: string | undefined
  /** Session that requests it, without which it is worth nothing (../sessions/accepted-session.ts). */
  sessionId?: string | null | undefined
  /** Repeats the message of the live token. Its link stays valid, whatever its challenge. */
  isRepeat?: boolean | undefined
  /** The code is that of the live token: its attempts and its end stay. */
  keepsCode: boolean
  /** The same work is done and nothing changes: there may be a live token. */
  isPretended?: boolean | undefined
  /** Codes that died of wrong attempts since the last one that was right. */
  usedUpCodes: number
  /** No number of wrong attempts ends the code. */
  isLong: boolean
  expiresAt: Date
  now: Date
}

/** Wrong attempts that end a code. */
export const MAX_ATTEMPTS = 5

/** `attempts` of a long code, which is never counted. */
const UNLIMITED = -1

export function findLastCode(trx: Transaction<DB>, userId: string, purpose: TokenPurpose) {
  return trx
    .selectFrom('one_time_tokens')
    .select(['attempts', 'used_up_codes', 'relates_to', 'code_hash', 'code_seed', 'code_expires_at'])
    .where('user_id', '=', userId)
    .where('purpose', '=', purpose)
    .executeTakeFirst()
}

/**
 * Replaces the user's live token of this purpose. Keeps the old link for a repeated message, and if the new one has a
 * code challenge, because only its requester can use it. Without a kept link a row is written too, because a second
 * request must not cost less for an address without an account.
 */
export async function putOneTimeToken(trx: Transaction<DB>, token: NewOneTimeToken): Promise<void> {
  const challenge = token.pkce?.challenge ?? null
  const keptBeside = token.isRepeat ? undefined : challenge
  const values = {
    relates_to: token.relatesTo,
    token_hash: token.tokenHash,
    code_hash: token.codeHash,
    code_seed: token.codeSeed,
    ...(token.keepsCode ? {} : { attempts: token.isLong ? UNLIMITED : 0, code_expires_at: token.expiresAt }),
    used_up_codes: token.usedUpCodes,
    code_challenge: challenge,
    code_challenge_method: token.pkce?.method ?? null,
    external_account: token.externalAccount ?? null,
    // A request for another link must not undo the claim of the replaced one.
    ...(token.isClaim ? { sets_password: true } : {}),
    session_id: token.sessionId ?? null,
    expires_at: token.expiresAt,
    created_at: token.now,
  }
  const isOf = { user_id: token.userId, purpose: token.purpose }
  await trx
    .with('kept', (qb) =>
      keepLink(qb, { ...isOf, relates_to: token.relatesTo }, keptBeside, !token.isPretended).returning('user_id'),
    )
    .with('not_kept', (qb) =>
      insertDecoy(qb, `earlier ${token.userId} ${token.purpose}`, token.now, sql`not exists (select from kept)`),
    )
    .with('too_old', (qb) => deleteOldLinks(qb, isOf, token.now))
    .insertInto('one_time_tokens')
    .values({ ...isOf, code_expires_at: token.expiresAt, ...values })
    .onConflict((conflict) =>
      conflict.columns(['user_id', 'purpose']).doUpdateSet(token.isPretended ? { purpose: token.purpose } : values),
    )
    .execute()
}

/** Finds the link's user, who is locked before the token. */
export async function findUserIdByLinkHash(db: Kysely<DB>, tokenHash: Buffer, purposes: readonly TokenPurpose[]) {
  const found = await linksWith(db, tokenHash, purposes).executeTakeFirst()
  return found?.user_id
}

export type TakenToken = Pick<Selectable<DB['one_time_tokens']>, 'token_hash' | (typeof TAKEN)[number]>

/**
 * Deletes the token of a link with the other links of its purpose; of parallel requests one gets the row, expired or
 * not.
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

const GUESSED = ['user_id', 'purpose', 'relates_to', 'code_hash', 'code_seed'] as const

interface Guess {
  address: string
  audience: string
  purposes: readonly TokenPurpose[]
  now: Date
}

/**
 * Counts an attempt at the codes sent to an address for these purposes and returns those that had an attempt left.
 * Counting comes before comparing, outside the flow's transaction, so that parallel guesses cannot share one attempt.
 * Without a code to guess, or at a long one, another row is written. A write takes longer than a read and would reveal
 * the live codes.
 */
export function countAttempt(db: Kysely<DB>, { address, audience, purposes, now }: Guess) {
  const isGuessed = sql<boolean>`${sql.ref('users.aud')} = ${audience} and relates_to = ${address}
    and purpose in (${sql.join(purposes)})`
  return db
    .with('tried', (qb) =>
      qb
        .updateTable('one_time_tokens')
        .from('users')
        .set((eb) => ({ attempts: eb('attempts', '+', 1) }))
        .whereRef('users.id', '=', 'one_time_tokens.user_id')
        .where(isGuessed)
        .where('attempts', '>=', 0)
        .where('attempts', '<', MAX_ATTEMPTS)
        .returning(GUESSED),
    )
    .with('missed', (qb) => insertDecoy(qb, `verify ${audience} ${address}`, now, sql`not exists (select from tried)`))
    .selectFrom('tried')
    .select(GUESSED)
    .unionAll((qb) =>
      qb
        .selectFrom('one_time_tokens')
        .innerJoin('users', 'users.id', 'one_time_tokens.user_id')
        .select(GUESSED)
        .where(isGuessed)
        .where('attempts', '<', 0),
    )
    .execute()
}

/** Takes back an attempt at codes of a user, of which one was right and could not be used. */
export async function refundAttempt(db: Kysely<DB>, userId: string, codeHashes: readonly Buffer[]): Promise<void> {
  await db
    .updateTable('one_time_tokens')
    .set((eb) => ({ attempts: eb('attempts', '-', 1) }))
    .where('user_id', '=', userId)
    .where('code_hash', 'in', codeHashes)
    .where('attempts', '>', 0)
    .execute()
}

/** Counts an attempt at a code that only its user can use. */
export function countAttemptOfUser(db: Kysely<DB>, userId: string, purpose: TokenPurpose) {
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
    .where('attempts', '<', MAX_ATTEMPTS)
    .returning(['purpose', 'relates_to', 'code_hash', 'code_seed', 'session_id', 'code_expires_at'])
    .executeTakeFirst()
}

interface SentToken {
  linkHash: Buffer | null
  codeHash: Buffer | null
  /** An earlier message has started the lifetime of the code. */
  repeatsCode: boolean
}

/**
 * Starts the lifetimes of link and code when their message leaves, however long that waited for a mail server. Returns
 * whether the code is alive: it dies with its replacement, while a replaced link may stay valid. Undefined: both were
 * used or replaced meanwhile. A row is written all the same.
 */
export async function restartLifetime(
  db: Kysely<DB>,
  userId: string,
  { linkHash, codeHash, repeatsCode }: SentToken,
  { expiresAt, now }: { expiresAt: Date; now: Date },
): Promise<{ hasCode: boolean } | undefined> {
  const isCode = sql`coalesce(code_hash = ${codeHash}, false)`
  const newest = sql<{ has_code: boolean }>`(update ${sql.table('one_time_tokens')} set expires_at = ${expiresAt},
      code_expires_at = case when ${isCode} and not ${sql.lit(repeatsCode)} then ${expiresAt} else code_expires_at end
    where user_id = ${userId} and (token_hash = ${linkHash} or code_hash = ${codeHash}) returning ${isCode} as has_code)`
  const earlier = sql<{ has_code: boolean }>`(update ${sql.table('earlier_links')} set expires_at = ${expiresAt}
    where user_id = ${userId} and token_hash = ${linkHash} returning false as has_code)`
  const isUnknown = sql<boolean>`not exists (select from newest) and not exists (select from earlier)`
  const restarted = await db
    .with('newest', () => newest)
    .with('earlier', () => earlier)
    .with('not_restarted', (qb) =>
      insertDecoy(qb, `restart ${(linkHash ?? codeHash)?.toString('base64')}`, now, isUnknown),
    )
    .selectFrom('newest')
    .select('has_code')
    .unionAll((qb) => qb.selectFrom('earlier').select('has_code'))
    .execute()
  return restarted.length > 0 ? { hasCode: restarted.some(({ has_code: hasCode }) => hasCode) } : undefined
}

/** Deletes a code's token after its hash matched; undefined: another request used it first. */
export async function takeByCodeHash(trx: Transaction<DB>, userId: string, purpose: TokenPurpose, codeHash: Buffer) {
  const taken = await trx
    .deleteFrom('one_time_tokens')
    .where('user_id', '=', userId)
    .where('purpose', '=', purpose)
    .where('code_hash', '=', codeHash)
    .returning(['token_hash', ...TAKEN])
    .returning((eb) => eb.ref('code_expires_at').$notNull().as('code_expires_at'))
    .executeTakeFirst()
  return taken && { ...taken, expires_at: taken.code_expires_at }
}

/** Lists the user's tokens of these purposes, if one of them is live. */
export async function findLiveTokens(db: Kysely<DB>, userId: string, purposes: readonly TokenPurpose[], now: Date) {
  const tokens = await db
    .selectFrom('one_time_tokens')
    .select(['purpose', 'relates_to', 'session_id', 'code_challenge', 'code_challenge_method'])
    .select((eb) => isStillGood(now)(eb).as('isLive'))
    .where('user_id', '=', userId)
    .where('purpose', 'in', purposes)
    .orderBy('purpose', 'desc')
    .execute()
  return tokens.some(({ isLive }) => isLive) ? tokens : []
}

export async function deleteOneTimeTokens(
  trx: Transaction<DB>,
  userId: string,
  purposes?: readonly TokenPurpose[],
): Promise<void> {
  const all = trx.deleteFrom('one_time_tokens').where('user_id', '=', userId)
  await (purposes ? all.where('purpose', 'in', purposes) : all).execute()
}

/**
 * Housekeeping: tokens of which link and code have expired. Those of a user with a failed message live again with its
 * retry.
 */
export function deleteExpiredTokens(db: Kysely<DB>, before: Date) {
  const condition = sql`not ${isStillGood(before)(expressionBuilder<DB, 'one_time_tokens'>())} and not exists (
    select from ${sql.table('messages')} message
    where message.user_id = ${sql.table('one_time_tokens')}.user_id and message.state = 'failed')`
  return deleteInBatches(db, 'one_time_tokens', { column: 'expires_at', before, condition })
}
