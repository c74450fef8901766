// Redeeming the one-time token of a mail: by its link or by the code typed in. The one rule: a token is taken in the
// same transaction as what it confirms, so it is worth exactly one confirmation. Making and mailing: ../signup/.
import type { FastifyBaseLogger } from 'fastify'
import type { Transaction } from 'kysely'
import { audit } from '../audit/audit.ts'
import type { DB, TokenPurpose } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { setIdentityEmailVerified } from '../identities/identities.store.ts'
import { hashCode, hashLinkToken, isSameHash, MAX_ATTEMPTS } from '../one-time-tokens/one-time-token.ts'
import {
  countAttempt,
  deleteOneTimeTokens,
  findUserIdByLinkHash,
  takeByCodeHash,
  takeByLinkHash,
} from '../one-time-tokens/one-time-tokens.store.ts'
import { requireStrongPassword } from '../passwords/require-strong-password.ts'
import type { SessionBody } from '../sessions/session-shape.ts'
import { type Client, startSession } from '../sessions/start-session.ts'
import {
  confirmEmail,
  findUserByEmail,
  findUserById,
  lockUser,
  refreshProviders,
  setPassword,
  type User,
} from '../users/users.store.ts'

/** What a link or code of each type may redeem; signup and invite are interchangeable, `email` takes any of them. */
const PURPOSES: Partial<Record<string, readonly TokenPurpose[]>> = {
  signup: ['confirmation'],
  invite: ['confirmation'],
  email: ['confirmation'],
}

/** The types of the specification, whether or not this version sends such mails. */
export const LINK_TYPES = ['signup', 'invite', 'recovery', 'magiclink', 'email_change', 'email'] as const

export interface Confirmation {
  type: string
  client: Client
  /** Needed by an invited user who has none. */
  password?: string | undefined
}

type Taken = Awaited<ReturnType<typeof takeByLinkHash>>

/** Redeems the token of a link (`token` of GET, `token_hash` of POST). */
export async function verifyLink(deps: Deps, log: FastifyBaseLogger, linkToken: string, confirmation: Confirmation) {
  if (!LINK_TYPES.includes(confirmation.type as (typeof LINK_TYPES)[number])) {
    throw apiError('validation_failed', { message: 'Invalid email verification type' })
  }
  const purposes = PURPOSES[confirmation.type] ?? []
  const tokenHash = hashLinkToken(linkToken)
  const userId = purposes.length > 0 ? await findUserIdByLinkHash(deps.db, tokenHash, purposes) : undefined
  if (!userId) throw apiError('otp_expired')
  return redeem(deps, log, confirmation, userId, (trx) => takeByLinkHash(trx, tokenHash, purposes))
}

/** Redeems a code typed in with its address. Unknown user, wrong code, expired code: one answer. */
export async function verifyCode(
  deps: Deps,
  log: FastifyBaseLogger,
  { email, audience, code }: { email: string; audience: string; code: string },
  confirmation: Confirmation,
) {
  const user = await findUserByEmail(deps.db, email, audience)
  const purposes = PURPOSES[confirmation.type] ?? []
  if (purposes.length === 0) throw apiError('otp_expired')
  // Also without a user, so that both cost one statement.
  const candidates = await countAttempt(deps.db, user?.id ?? deps.newId(), purposes, MAX_ATTEMPTS)
  const match = candidates.find(
    ({ purpose, relates_to, code_hash }) =>
      code_hash && isSameHash(code_hash, hashCode(deps.codeKey, purpose, relates_to, code)),
  )
  if (!user || !match?.code_hash) throw apiError('otp_expired')
  const { purpose, code_hash: codeHash } = match
  return redeem(deps, log, confirmation, user.id, (trx) => takeByCodeHash(trx, user.id, purpose, codeHash))
}

async function redeem(
  deps: Deps,
  log: FastifyBaseLogger,
  confirmation: Confirmation,
  userId: string,
  take: (trx: Transaction<DB>) => Promise<Taken>,
): Promise<SessionBody> {
  const passwordHash = await hashGivenPassword(deps, confirmation.password)
  const session = await deps.db.transaction().execute(async (trx) => {
    const now = deps.now()
    const user = await lockUser(trx, userId)
    const token = await take(trx)
    if (!user || !token || token.expires_at <= now) throw apiError('otp_expired')
    if (user.banned_until && user.banned_until > now) throw apiError('user_banned')
    if (user.invited_at && !user.password_hash && confirmation.type === 'signup') {
      if (!passwordHash) {
        throw apiError('validation_failed', { message: 'Invited users must specify a password in the signup type' })
      }
      await setPassword(trx, user.id, passwordHash, now)
    }
    await confirmEmail(trx, user.id, now)
    await setIdentityEmailVerified(trx, user.id, token.relates_to, now)
    await deleteOneTimeTokens(trx, user.id)
    await refreshProviders(trx, user.id, now)
    const confirmed = (await findUserById(trx, user.id)) as User
    await audit(deps, trx, log, { action: 'user_signedup', actor: confirmed, traits: { provider: 'email' } })
    return startSession(deps, trx, confirmed, 'otp', confirmation.client)
  })
  return { ...session, type: confirmation.type === 'email' ? 'signup' : confirmation.type }
}

/** Hashed before the transaction, which must not hold locks for the time of a hash. */
async function hashGivenPassword(deps: Deps, password: string | undefined): Promise<string | undefined> {
  if (password === undefined || password === '') return undefined
  await requireStrongPassword(deps, password)
  return deps.passwords.hash(password)
}
