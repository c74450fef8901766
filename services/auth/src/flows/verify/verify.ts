// Redeems one-time tokens, by the link or by the code typed in. The transaction that takes a token also makes its
// change, so a token works once. The change of each purpose: confirm.ts. Issuing and sending:
// ../../core/verification-messages/. Tests: verify.test.ts here, test/contract/verify.test.ts, test/takeover.test.ts.
//
// A token redeemed by                | ends as
// its link, or its code within time  | used; all other tokens of the user end
// the first of two e-mail addresses  | used; the change waits for the other address
// a link of the PKCE flow            | used; the user's other links work until the auth code is exchanged
// MAX_ATTEMPTS wrong codes           | dead to codes; its link still works
import { ApiError } from '@services/common/errors'
import type { Transaction } from 'kysely'
import { LINK_TYPES, type LinkType } from '../../adapters/mail/kinds.ts'
import type { AuditLog } from '../../core/audit/audit.ts'
import { givingBack } from '../../core/hooks/give-back.ts'
import { withHooks } from '../../core/hooks/questions.ts'
import { issueAuthCode } from '../../core/one-time-tokens/auth-codes.store.ts'
import { linksBeside, putLinksBack } from '../../core/one-time-tokens/earlier-links.store.ts'
import { hashLinkToken } from '../../core/one-time-tokens/one-time-token.ts'
import {
  countAttempt,
  findUserIdByLinkHash,
  refundAttempt,
  type TakenToken,
  takeByCodeHash,
  takeByLinkHash,
} from '../../core/one-time-tokens/one-time-tokens.store.ts'
import { pkceOf } from '../../core/one-time-tokens/pkce.ts'
import { isRightCode } from '../../core/one-time-tokens/right-code.ts'
import { requireStrongPassword } from '../../core/passwords/require-strong-password.ts'
import { isRequesterAccepted } from '../../core/sessions/accepted-session.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import { findUserById, lockUser } from '../../core/users/users.store.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { confirm, isUnproven, provesUnproven } from './confirm.ts'

/** Purposes that each `type` redeems; signup and invite are interchangeable, as are recovery and magiclink. */
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

/** Reports whether links of one type can be redeemed as the other: the type in a link can be edited. */
export const isSameLink = (type: string, other: LinkType): boolean =>
  TYPES_OF_LINKS.includes(type) && PURPOSES[type]?.some((purpose) => PURPOSES[other]?.includes(purpose)) === true

export const TYPES = Object.keys(PURPOSES)

/** `type` of GET /verify: those of mails, and `email` for any of them. */
export const TYPES_OF_LINKS: readonly string[] = [...LINK_TYPES, 'email']

export interface VerifyRequest {
  log: AuditLog
  type: string
  client: Client
  clientAddress: string | undefined
  /** New password for a user without one; required from an invited user. */
  password?: string | undefined
  /** Whether a link of the PKCE flow returns a code: the browser followed it, not the application. */
  givesCode?: boolean
  acceptLanguage: string | undefined
  /** Whether the request comes from the browser of this sign-in at a provider. */
  isBound: (attemptId: string) => boolean
}

export type VerifyOutcome =
  | { session: SessionBody }
  /** Exchanged at POST /token?grant_type=pkce. */
  | { authCode: string }
  /** The first of the two addresses of an e-mail change has agreed. */
  | { awaitsOtherAddress: true }

export async function verifyLink(deps: Deps, linkToken: string, request: VerifyRequest): Promise<VerifyOutcome> {
  try {
    return await redeemLink(deps, linkToken, request)
  } catch (error) {
    throw error instanceof ApiError && error.code === 'otp_expired' ? linkExpired() : error
  }
}

/** Applications match this text, and the one for a code in errors.ts, word by word. */
const linkExpired = () => apiError('otp_expired', { message: 'Email link is invalid or has expired' })

async function redeemLink(deps: Deps, linkToken: string, request: VerifyRequest) {
  if (!TYPES_OF_LINKS.includes(request.type)) {
    throw apiError('validation_failed', { message: 'Invalid email verification type' })
  }
  const purposes = PURPOSES[request.type] as readonly TokenPurpose[]
  const tokenHash = hashLinkToken(linkToken)
  const userId = await findUserIdByLinkHash(deps.db, tokenHash, purposes)
  if (!userId) throw apiError('otp_expired')
  const password = givenPassword(request)
  if (password) await requireStrongPassword(deps, password, (await findUserById(deps.db, userId))?.email)
  return redeem(deps, request, userId, (trx) => takeLink(trx, request, userId, tokenHash, purposes))
}

/** Purposes whose other links may stay valid. A change of address ends its other links. */
const SPARED: readonly TokenPurpose[] = ['confirmation', 'recovery']

interface Taken {
  token: TakenToken
  /** Links that stay valid, because only this link's requester can exchange its code: another may be the owner's. */
  spared?: Awaited<ReturnType<typeof linksBeside>>
}

async function takeLink(
  trx: Transaction<DB>,
  { givesCode }: VerifyRequest,
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

/** Redeems a code typed in with its address. Unknown address, wrong code and expired code get the same answer. */
export async function verifyCode(
  deps: Deps,
  { address, audience, code }: { address: string; audience: string; code: string },
  request: VerifyRequest,
) {
  const purposes = Object.hasOwn(PURPOSES, request.type) ? PURPOSES[request.type] : undefined
  if (!purposes) throw apiError('otp_expired')
  // Before the attempt is counted: a weak password is not a guess at the code.
  const password = givenPassword(request)
  if (password) await requireStrongPassword(deps, password, address)
  const candidates = await countAttempt(deps.db, { address, audience, purposes, now: deps.now() })
  let match: (typeof candidates)[number] | undefined
  for (const candidate of candidates) if (!match && (await isRightCode(deps, candidate, code))) match = candidate
  if (!match?.code_hash) throw apiError('otp_expired')
  const { user_id: userId, purpose, code_hash: codeHash } = match
  const counted = candidates.flatMap((each) => (each.user_id === userId && each.code_hash ? [each.code_hash] : []))
  const redeemCode = () =>
    redeem(deps, request, userId, async (trx) => {
      const token = await takeByCodeHash(trx, userId, purpose, codeHash)
      return token && { token }
    })
  return givingBack(redeemCode, () => refundAttempt(deps.db, userId, counted))
}

async function redeem(
  deps: Deps,
  request: VerifyRequest,
  userId: string,
  take: (trx: Transaction<DB>) => Promise<Taken | undefined>,
): Promise<VerifyOutcome> {
  const { log, type, acceptLanguage, isBound } = request
  const password = givenPassword(request)
  // Before the transaction, which must not hold locks while hashing.
  const passwordHash = password ? await deps.passwords.hash(password) : undefined
  let proven: string | undefined
  let isFirstProof = false
  const outcome = await withHooks(deps, log, (asking) =>
    deps.db.transaction().execute(async (trx): Promise<VerifyOutcome> => {
      const now = deps.now()
      const user = await lockUser(trx, userId)
      const taken = await take(trx)
      if (!user || !taken) throw apiError('otp_expired')
      const { token, spared = [] } = taken
      if (isBanned(user, now) && !provesUnproven(user, token)) throw apiError('user_banned')
      const begun = { userId: user.id, sessionId: token.session_id }
      if (token.expires_at <= now || !(await isRequesterAccepted(deps, trx, begun))) throw apiError('otp_expired')
      const signedIn = await confirm(asking, trx, log, { user, token, type, passwordHash, acceptLanguage, isBound })
      if (!signedIn) return { awaitsOtherAddress: true }
      proven = `${signedIn.aud}\0${token.relates_to}`
      isFirstProof = isUnproven(user, token)
      const effective = effectiveType(type, token.purpose)
      const pkce = pkceOf(token)
      if (request.givesCode && pkce) {
        // A banned account's links must not open the new account, and that account may be deleted.
        if (signedIn.id === user.id) await putLinksBack(trx, spared, now)
        const method = effective === 'signup' ? 'email/signup' : effective
        const code = { userId: signedIn.id, pkce, method, sessionId: token.session_id }
        return { authCode: await issueAuthCode(deps, trx, code) }
      }
      const session = await startSession(asking, trx, signedIn, sessionMethod(token.purpose), request.client)
      return { session: { ...session, type: effective } }
    }),
  )
  if (!proven) return outcome
  const prover = { identifier: proven, address: request.clientAddress }
  // Made before the account had a password that works, they would only delay its owner.
  if (isFirstProof) await deps.passwordAttempts.forget(prover)
  // An auth code counts as a sign-in once it is exchanged: a mail scanner may have opened the link.
  if ('session' in outcome) await deps.passwordAttempts.markClientKnown(prover)
  return outcome
}

/**
 * `amr` of the session. The requester of a change of address confirms it, which proves less than a code to a known
 * address.
 */
function sessionMethod(purpose: TokenPurpose): string {
  if (purpose === 'phone_change') return 'phone_change'
  return purpose === 'email_change_new' || purpose === 'email_change_current' ? 'email_change' : 'otp'
}

/** `email` matches either kind of mail. */
function effectiveType(type: string, purpose: TokenPurpose): string {
  if (type !== 'email') return type
  return purpose === 'recovery' ? 'magiclink' : 'signup'
}

const TYPES_WITH_PASSWORD = ['signup', 'invite', 'email']

const givenPassword = ({ type, password }: VerifyRequest) => (TYPES_WITH_PASSWORD.includes(type) ? password : undefined)
