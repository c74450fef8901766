import type { Transaction } from 'kysely'
import { parseEmail } from '../../../adapters/mail/email-address.ts'
import { testCodeOf } from '../../../adapters/test-codes.ts'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { type Asking, withHooks } from '../../../core/hooks/questions.ts'
import { issueToken } from '../../../core/one-time-tokens/one-time-token.ts'
import type { Pkce } from '../../../core/one-time-tokens/pkce.ts'
import { requireStrongPassword } from '../../../core/passwords/require-strong-password.ts'
import { setAdminClaim } from '../../../core/users/address-claims.store.ts'
import { claimOf, recordAdminClaim, recordClaim } from '../../../core/users/address-claims.ts'
import { refuseTakenEmail } from '../../../core/users/addresses.store.ts'
import { mergeUserMetadata } from '../../../core/users/metadata.store.ts'
import { mergedMetadata, requireModestMetadata } from '../../../core/users/metadata.ts'
import { withoutFacts } from '../../../core/users/proven-addresses.ts'
import { releaseAddress } from '../../../core/users/registrants.store.ts'
import {
  findUserByEmail,
  findUserById,
  type LockedAccount,
  lockAndReadUser,
  setPassword,
  setSentAt,
  type User,
} from '../../../core/users/users.store.ts'
import { beginEmailChange } from '../../../core/verification-messages/address-change.ts'
import {
  confirmationUrl,
  LINK_KINDS,
  type LinkKind,
  linkLifetime,
  type MailContext,
} from '../../../core/verification-messages/link-mail.ts'
import type { DB, Metadata, TokenPurpose } from '../../../db/tables.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { isProven, lockInvited, lockUnproven } from './invite-user.ts'

type EmailChange = 'email_change_current' | 'email_change_new'
type GeneratedType = 'signup' | 'invite' | 'magiclink' | 'recovery' | EmailChange

interface LinkOrder {
  type: GeneratedType
  email: string
  /** email_change_* only. */
  newEmail: string
  /** signup of a new address only. */
  password: string
  data: Metadata
  audience: string
  context: MailContext
  pkce: Pkce | undefined
}

interface Made {
  kind: LinkKind
  user: User
  /** Address to prove; the order's by default. */
  relatesTo?: string
  /** Purpose of the token; that of the mail by default. */
  purpose?: TokenPurpose
  isClaim?: boolean
}

/**
 * Makes the link and code of a mail without sending them, audited under the admin, who can sign in with them as the
 * user. A magic link for an unknown address signs up.
 */
export async function generateLink(deps: Deps, log: AuditLog, admin: Actor, input: LinkOrder) {
  const order = { ...input, data: withoutFacts(input.data) }
  requireModestMetadata(order.data)
  await releaseAddress(deps, deps.db, { channel: 'email', value: order.email }, order.audience)
  const known = await findUserByEmail(deps.db, order.email, order.audience)
  const type = order.type === 'magiclink' && !known ? 'signup' : order.type
  const passwordHash = await passwordOf(deps, order, type, known !== undefined)
  return withHooks(deps, log, (asking) =>
    deps.db.transaction().execute(async (trx) => {
      const made = await MAKERS[type]({ deps: asking, trx, log, admin, order, passwordHash })
      const relatesTo = made.relatesTo ?? order.email
      const token = await issueToken(deps, trx, {
        userId: made.user.id,
        purpose: made.purpose ?? LINK_KINDS[made.kind].purpose,
        relatesTo,
        code: testCodeOf(deps.config.mail.testAddresses, relatesTo, deps.now()),
        codeLength: deps.config.mail.codeLength,
        lifetimeSeconds: linkLifetime(deps.config, made.kind),
        isClaim: made.isClaim,
        pkce: order.pkce,
      })
      const user = await findUserById(trx, made.user.id)
      if (!user) throw apiError('user_not_found', { status: 404 })
      // Each sign-up link for an existing account merges more into it.
      if (type === 'signup') requireModestMetadata(user.user_metadata)
      await audit(deps, trx, log, { action: 'link_generated', actor: admin, target: user, traits: { type } })
      const properties = {
        action_link: confirmationUrl(deps.config, made.kind, token, order.context),
        email_otp: token.code,
        hashed_token: token.linkToken,
        verification_type: type,
        redirect_to: order.context.redirectTo,
      }
      return { user, properties }
    }),
  )
}

/** Hashes the password of a sign-up, before the transaction. A magic link that became a sign-up has none. */
async function passwordOf(deps: Deps, order: LinkOrder, type: GeneratedType, isKnown: boolean): Promise<string | null> {
  if (type !== 'signup' || order.type === 'magiclink') return null
  if (order.password === '') {
    if (isKnown) return null
    throw apiError('validation_failed', { message: 'Signup requires a valid password' })
  }
  await requireStrongPassword(deps, order.password, order.email)
  return deps.passwords.hash(order.password)
}

interface Making {
  deps: Asking<Deps>
  trx: Transaction<DB>
  log: AuditLog
  admin: Actor
  order: LinkOrder
  passwordHash: string | null
}

const MAKERS: Record<GeneratedType, (making: Making) => Promise<Made>> = {
  signup: async (making) => {
    const { deps, trx, order, passwordHash } = making
    // Before the account: the order of locks.
    await recordAdminClaim(trx, emailClaim(making, passwordHash, order.data))
    const user = await lockUnproven(deps, trx, order)
    await claimForAdmin(making, user)
    await setSentAt(trx, user.id, 'confirmation_sent_at', deps.now())
    return { kind: 'confirmation', user, isClaim: true }
  },
  invite: async ({ deps, trx, log, admin, order }) => {
    const user = await lockInvited(deps, trx, log, admin, order)
    await audit(deps, trx, log, { action: 'user_invited', actor: admin, target: user })
    return { kind: 'invite', user, isClaim: true }
  },
  magiclink: (making) => makeSignInLink(making, 'magic_link'),
  recovery: (making) => makeSignInLink(making, 'recovery'),
  email_change_current: (making) => makeEmailChange(making, 'email_change_current'),
  email_change_new: (making) => makeEmailChange(making, 'email_change_new'),
}
export const GENERATED_TYPES = Object.keys(MAKERS) as GeneratedType[]

/** Replaces data that was registered before by the admin's, or merges it into data of an earlier admin. */
async function claimForAdmin({ deps, trx, order: { data }, passwordHash }: Making, user: LockedAccount) {
  const now = deps.now()
  if (isProven(user) || user.email_vouched) {
    await mergeUserMetadata(trx, user.id, data, now)
    if (passwordHash && !isProven(user)) await setPassword(trx, user.id, passwordHash, now)
    return
  }
  const before = user.claim?.by_admin ? user.claim : { password_hash: null, data: {} }
  await setAdminClaim(trx, user.id, {
    password_hash: passwordHash ?? before.password_hash,
    data: mergedMetadata(before.data, data),
  })
}

const emailClaim = ({ deps, order: { email } }: Making, passwordHash: string | null, data: Metadata) =>
  claimOf(deps, { address: { channel: 'email', value: email }, passwordHash, data })

async function makeSignInLink(making: Making, kind: 'magic_link' | 'recovery'): Promise<Made> {
  const { deps, trx, order } = making
  // Another request may have registered the address with a password; this link proves the address, that request did
  // not.
  await recordClaim(trx, emailClaim(making, null, {}))
  const user = await lockKnown(trx, order)
  await setSentAt(trx, user.id, 'recovery_sent_at', deps.now())
  return { kind, user, isClaim: !user.email_confirmed_at }
}

async function makeEmailChange({ deps, trx, order }: Making, purpose: EmailChange): Promise<Made> {
  const user = await lockKnown(trx, order)
  const isCurrent = purpose === 'email_change_current'
  if (isCurrent && !deps.config.mail.secureEmailChange) {
    throw apiError('validation_failed', { message: 'Enable secure email change to generate link for current email' })
  }
  const newEmail = parseEmail(order.newEmail)
  await refuseTakenEmail(trx, newEmail, user.aud, user.id)
  await beginEmailChange(deps, trx, user, newEmail, null)
  return { kind: 'email_change', user, purpose, relatesTo: isCurrent ? order.email : newEmail }
}

async function lockKnown(trx: Transaction<DB>, { email, audience }: LinkOrder): Promise<User> {
  const found = await findUserByEmail(trx, email, audience)
  if (!found) throw apiError('user_not_found', { status: 404, message: 'User with this email not found' })
  const user = await lockAndReadUser(trx, found.id)
  if (!user || user.email !== email) throw apiError('user_not_found', { status: 404 })
  return user
}
