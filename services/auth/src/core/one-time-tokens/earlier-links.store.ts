// Replaced links that stay valid: a link with a code challenge serves only the browser that requested it, which may be
// a stranger's. They end with the newest token of their purpose, whose row they refer to.
import { type ExpressionBuilder, type QueryCreator, type Selectable, sql, type Transaction } from 'kysely'
import type { DB, TokenPurpose } from '../../db/tables.ts'

export const TAKEN = [
  'user_id',
  'purpose',
  'relates_to',
  'expires_at',
  'code_challenge',
  'code_challenge_method',
  'sets_password',
  'external_account',
  'session_id',
] as const

type KeptLink = Pick<Selectable<DB['earlier_links']>, 'token_hash' | (typeof TAKEN)[number]>

interface Purpose {
  user_id: string
  purpose: TokenPurpose
}

/** Keeps the link that a token with this challenge is about to replace, unless theirs are equal; undefined: always. */
export const keepLink = (
  db: QueryCreator<DB>,
  replaced: Purpose & { relates_to: string },
  challenge: string | null | undefined,
  isReplaced: boolean,
) =>
  db
    .insertInto('earlier_links')
    .columns(['token_hash', ...TAKEN])
    .expression(
      db
        .selectFrom('one_time_tokens')
        .select((eb) => [eb.ref('token_hash').$notNull().as('token_hash'), ...TAKEN])
        .where((eb) => eb.and(replaced))
        .where('token_hash', 'is not', null)
        .where((eb) => (challenge === undefined ? sql.lit(true) : eb('code_challenge', 'is distinct from', challenge)))
        .where(sql.lit(isReplaced)),
    )

/** Longest time that a mail waits for its server before it starts the lifetime of a replaced link. */
const KEEP_MS = 2 * 86_400_000

export const deleteOldLinks = (db: QueryCreator<DB>, purpose: Purpose, now: Date) =>
  db
    .deleteFrom('earlier_links')
    .where((eb) => eb.and(purpose))
    .where('expires_at', '<', new Date(now.getTime() - KEEP_MS))

/**
 * Whether the token, or a link that it replaced, has not expired: an earlier link outlives it if its mail leaves later.
 */
export const isStillGood = (now: Date) => (eb: ExpressionBuilder<DB, 'one_time_tokens'>) =>
  eb.or([
    eb('one_time_tokens.expires_at', '>', now),
    eb.exists(
      eb
        .selectFrom('earlier_links')
        .select('earlier_links.user_id')
        .whereRef('earlier_links.user_id', '=', 'one_time_tokens.user_id')
        .whereRef('earlier_links.purpose', '=', 'one_time_tokens.purpose')
        .where('earlier_links.expires_at', '>', now),
    ),
  ])

export const linksWith = (db: QueryCreator<DB>, tokenHash: Buffer, purposes: readonly TokenPurpose[]) =>
  db
    .selectFrom('one_time_tokens')
    .select(['token_hash', ...TAKEN])
    .where('token_hash', '=', tokenHash)
    .where('purpose', 'in', purposes)
    .unionAll(
      db
        .selectFrom('earlier_links')
        .select(['token_hash', ...TAKEN])
        .where('token_hash', '=', tokenHash)
        .where('purpose', 'in', purposes),
    )

export function linksBeside(
  trx: Transaction<DB>,
  userId: string,
  purposes: readonly TokenPurpose[],
  tokenHash: Buffer,
): Promise<KeptLink[]> {
  const isBeside = sql<boolean>`user_id = ${userId} and purpose in (${sql.join(purposes)}) and token_hash != ${tokenHash}`
  return trx
    .selectFrom('one_time_tokens')
    .select((eb) => [eb.ref('token_hash').$notNull().as('token_hash'), ...TAKEN])
    .where(isBeside)
    .unionAll(
      trx
        .selectFrom('earlier_links')
        .select(['token_hash', ...TAKEN])
        .where(isBeside),
    )
    .orderBy('expires_at', 'desc')
    .execute()
}

/** Puts back links whose tokens were deleted; their codes, which could be guessed, stay dead. */
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
