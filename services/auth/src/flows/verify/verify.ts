// Redeeming a one-time token: by its link or by the code typed in. The one rule: a token is taken in the same transaction
// as what it confirms, so it is worth exactly one confirmation. What each confirms: confirm.ts. Making and sending them:
// core/verification-messages/.
import { ApiError } from '@services/common/errors'
import type { Transaction } from 'kysely'
import { LINK_TYPES, type LinkType } from '../../adapters/mail/kinds.ts'
import type { AuditLog } from '../../core/audit/audit.ts'
import { linksBeside, putLinksBack } from '../../core/one-time-tokens/earlier-links.store.ts'
import { issueAuthCode } from '../../core/one-time-tokens/issue-auth-code.ts'
import { hashCode, hashLinkToken, isSameHash, MAX_ATTEMPTS } from '../../core/one-time-tokens/one-time-token.ts'
import {
  countAttempt,
  findUserIdByLinkHash,
  type TakenToken,
  takeByCodeHash,
  takeByLinkHash,
} from '../../core/one-time-tokens/one-time-tokens.store.ts'
import { requireStrongPassword } from '../../core/passwords/require-strong-password.ts'
import type { SessionBody } from '../../core/sessions/session-shape.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import { findUserById, lockUser } from '../../core/users/users.store.ts'
import type { ChallengeMethod, DB, TokenPurpose } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { confirm, provesUnproven } from './confirm.ts'

/** What a link or code of each type may redeem; signup and invite are interchangeable, as are recovery and magiclink. */
const PURPOSES: Record<string, readonly TokenPurpose[]> = {
  signup: ['confirmation'],
  invite: ['confirmation'],
  recovery: ['recovery'],
  magiclink: ['recovery'],
  email: ['confirmation', 'recovery'],
  email_change: ['email_change_current', 'email_change_new'],
  sms: ['phone_confirmation'],
  phone_change: ['phone_change'],
}

/** Whether links of one type are redeemed by the other, which anybody may write into the link instead. */
export const isSameLink = (type: string, other: LinkType): boolean =>
  TYPES_OF_LINKS.includes(type) && PURPOSES[type]?.some((purpose) => PURPOSES[other]?.includes(purpose)) === true

/** What POST /verify takes as `type`. */
export const TYPES = Object.keys(PURPOSES)

/** What GET /verify takes as `type`: those of mails and the one that stands for any of them. */
export const TYPES_OF_LINKS: readonly string[] = [...LINK_TYPES, 'email']

export interface Confirmation {
  type: string
  client: Client
  /** The client address a trusted proxy vouches for. */
  clientAddress: string | undefined
  /** Becomes the user's who has none; an invited one needs it. */
  password?: string | undefined
  /** Whether a link of the PKCE flow gives a code instead of a session: the browser followed it, not the application. */
  givesCode?: boolean
  acceptLanguage: string | undefined
}

export type Confirmed =
  | { session: SessionBody }
  /** To be exchanged at POST /token?grant_type=pkce. */
  | { authCode: string }
  /** One of the two addresses of an e-mail change has agreed. */
  | { awaitsOtherAddress: true }

/** Redeems the token of a link (`token` of GET, `token_hash` of POST). */
export async function verifyLink(
  deps: Deps,
  log: AuditLog,
  linkToken: string,
  confirmation: Confirmation,
): Promise<Confirmed> {
  try {
    return await redeemLink(deps, log, linkToken, confirmation)
  } catch (error) {
    throw error instanceof ApiError && error.code === 'otp_expired' ? linkExpired() : error
  }
}

/** Applications match this text and that of a code (errors.ts) word by word. */
const linkExpired = () => apiError('otp_expired', { message: 'Email link is invalid or has expired' })

async function redeemLink(deps: Deps, log: AuditLog, linkToken: string, confirmation: Confirmation) {
  if (!TYPES_OF_LINKS.includes(confirmation.type)) {
    throw apiError('validation_failed', { message: 'Invalid email verification type' })
  }
  const purposes = PURPOSES[confirmation.type] as readonly TokenPurpose[]
  const tokenHash = hashLinkToken(linkToken)
  const userId = await findUserIdByLinkHash(deps.db, tokenHash, purposes)
  if (!userId) throw apiError('otp_expired')
  if (givenPassword(confirmation)) {
    await requireFitPassword(deps, confirmation, (await findUserById(deps.db, userId))?.email)
  }
  return redeem(deps, log, confirmation, userId, (trx) => takeLink(trx, confirmation, userId, tokenHash, purposes))
}

/** A change of address that is made leaves nothing to its other links. */
const SPARED: readonly TokenPurpose[] = ['confirmation', 'recovery']

interface Taken {
  token: TakenToken
  /** Links that stay good, where this one gives a code that only its asker can exchange: another one may be the owner's. */
  spared?: Awaited<ReturnType<typeof linksBeside>>
}

async function takeLink(
  trx: Transaction<DB>,
  { givesCode }: Confirmation,
  userId: string,
  tokenHash: Buffer,
  purposes: readonly TokenPurpose[],
): Promise<Taken | undefined> {
  const others = givesCode ? await linksBeside(trx, userId, purposes, tokenHash) : []
  const token = await takeByLinkHash(trx, tokenHash, purposes)
  if (!token) return undefined
  const isSpared = token.code_challenge !== null && SPARED.includes(token.purpose)
  return { token, spared: isSpared ? others.filter(({ purpose }) => purpose === token.purpose) : [] }
}

/** Redeems a code typed in with the address it was sent to. Unknown address, wrong code, expired code: one answer. */
export async function verifyCode(
  deps: Deps,
  log: AuditLog,
  { address, audience, code }: { address: string; audience: string; code: string },
  confirmation: Confirmation,
) {
  const purposes = Object.hasOwn(PURPOSES, confirmation.type) ? PURPOSES[confirmation.type] : undefined
  if (!purposes) throw apiError('otp_expired')
  // Before the try is counted: a password that is too weak is no guess at the code.
  await requireFitPassword(deps, confirmation, address)
  const candidates = await countAttempt(deps.db, { address, audience, purposes, now: deps.now() }, MAX_ATTEMPTS)
  const match = candidates.find(
    ({ purpose, relates_to, code_hash }) =>
      code_hash && isSameHash(code_hash, hashCode(deps.codeKey, purpose, relates_to, code)),
  )
  if (!match?.code_hash) throw apiError('otp_expired')
  const { user_id: userId, purpose, code_hash: codeHash } = match
  return redeem(deps, log, confirmation, userId, async (trx) => {
    const token = await takeByCodeHash(trx, userId, purpose, codeHash)
    return token && { token }
  })
}

async function redeem(
  deps: Deps,
  log: AuditLog,
  confirmation: Confirmation,
  userId: string,
  take: (trx: Transaction<DB>) => Promise<Taken | undefined>,
): Promise<Confirmed> {
  const passwordHash = await hashGivenPassword(deps, confirmation)
  const { type, acceptLanguage } = confirmation
  let proven: string | undefined
  const confirmed = await deps.db.transaction().execute(async (trx): Promise<Confirmed> => {
    const now = deps.now()
    const user = await lockUser(trx, userId)
    const taken = await take(trx)
    if (!user || !taken) throw apiError('otp_expired')
    const { token, spared = [] } = taken
    if (isBanned(user, now) && !provesUnproven(user, token)) throw apiError('user_banned')
    if (token.expires_at <= now) throw apiError('otp_expired')
    const signedIn = await confirm(deps, trx, log, { user, token, type, passwordHash, acceptLanguage })
    if (!signedIn) return { awaitsOtherAddress: true }
    proven = `${signedIn.aud}\0${token.relates_to}`
    const effective = effectiveType(type, token.purpose)
    if (confirmation.givesCode && token.code_challenge) {
      // Links of a banned account are no way into the new one, and their account may be deleted.
      if (signedIn.id === user.id) await putLinksBack(trx, spared, now)
      const pkce = { challenge: token.code_challenge, method: token.code_challenge_method as ChallengeMethod }
      const method = effective === 'signup' ? 'email/signup' : effective
      return { authCode: await issueAuthCode(deps, trx, { userId: signedIn.id, pkce, method }) }
    }
    const session = await startSession(deps, trx, signedIn, sessionMethod(token.purpose), confirmation.client)
    return { session: { ...session, type: effective } }
  })
  // A code of the PKCE flow is a sign-in once it is exchanged: a scanner of mails may have opened the link.
  if (proven && 'session' in confirmed)
    await deps.limits.noteSignIn({ identifier: proven, address: confirmation.clientAddress })
  return confirmed
}

/**
 * How the session began. A change of address is agreed to by whoever asked for it, so it proves less than a code to an
 * address the user had: see passwords in flows/account/.
 */
function sessionMethod(purpose: TokenPurpose): string {
  if (purpose === 'phone_change') return 'phone_change'
  return purpose === 'email_change_new' || purpose === 'email_change_current' ? 'email_change' : 'otp'
}

/** `email` stands for whatever was sent. */
function effectiveType(type: string, purpose: TokenPurpose): string {
  if (type !== 'email') return type
  return purpose === 'recovery' ? 'magiclink' : 'signup'
}

/** Types by which a user chooses a password. */
const TYPES_WITH_PASSWORD = ['signup', 'invite', 'email']

const givenPassword = ({ type, password }: Confirmation) => (TYPES_WITH_PASSWORD.includes(type) ? password : undefined)

async function requireFitPassword(
  deps: Deps,
  confirmation: Confirmation,
  email: string | null | undefined,
): Promise<void> {
  const password = givenPassword(confirmation)
  if (password) await requireStrongPassword(deps, password, email)
}

/** Hashed before the transaction, which must not hold locks for the time of a hash. */
async function hashGivenPassword(deps: Deps, confirmation: Confirmation): Promise<string | undefined> {
  const password = givenPassword(confirmation)
  return password ? deps.passwords.hash(password) : undefined
}
