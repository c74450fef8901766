import type { Transaction } from 'kysely'
import type { AuditAction } from '../../core/audit/actions.ts'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import type { Traits } from '../../core/audit/personal-data.ts'
import type { Asking } from '../../core/hooks/questions.ts'
import {
  deleteProviderIdentities,
  endEntries,
  putProvenIdentity,
  setIdentityVerified,
} from '../../core/identities/identities.store.ts'
import { linkProvenAccount } from '../../core/identities/unproven-account.ts'
import type { TakenToken } from '../../core/one-time-tokens/one-time-tokens.store.ts'
import { notify, notifyPhoneChange } from '../../core/outbox/notify.ts'
import type { Address } from '../../core/users/address.ts'
import { hasProviderIdentity } from '../../core/users/address-claims.store.ts'
import { applyClaim } from '../../core/users/address-claims.ts'
import {
  applyEmailChange,
  applyPhoneChange,
  confirmAddress,
  recordFirstConfirmation,
  refuseTakenEmail,
  refuseTakenPhone,
} from '../../core/users/addresses.store.ts'
import { displaceRegistrant } from '../../core/users/displace-registrant.ts'
import { endTokens } from '../../core/users/end-tokens.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import { refreshProviders } from '../../core/users/metadata.store.ts'
import { findUserById, type LockedUser, setPassword, type User } from '../../core/users/users.store.ts'
import { needsBothAddresses } from '../../core/verification-messages/address-change.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { takeOver } from './take-over.ts'

export interface Redemption {
  user: LockedUser
  token: TakenToken
  type: string
  /** Hash of the password given with the token. */
  passwordHash: string | undefined
  acceptLanguage: string | undefined
  isBound: (attemptId: string) => boolean
}

interface Effect {
  action: AuditAction
  traits?: Traits
  /** The account that was proven, if not the one the token was sent for. */
  userId?: string
}

type Apply = (
  deps: Asking<Deps>,
  trx: Transaction<DB>,
  redemption: Redemption,
  log: AuditLog,
) => Promise<Effect | undefined>

/**
 * Makes the change of a token, by its purpose, and ends all other tokens and pending changes of its user. Returns the
 * changed user; undefined when the other address of an e-mail change has to agree too.
 */
export async function confirm(
  deps: Asking<Deps>,
  trx: Transaction<DB>,
  log: AuditLog,
  redemption: Redemption,
): Promise<User | undefined> {
  const { user } = redemption
  const apply = isBanned(user, deps.now()) ? leaveBanned : EFFECTS[redemption.token.purpose]
  const effect = await apply(deps, trx, redemption, log)
  if (!effect) return undefined
  const { userId = user.id, ...event } = effect
  await endTokens(trx, user.id, 'all', deps.now())
  await refreshProviders(trx, userId, deps.now())
  const owner = (await findUserById(trx, userId)) as User
  await audit(deps, trx, log, { ...event, actor: owner })
  return owner
}

/**
 * Reports whether the token gives the account's address its first proof. A ban is the registrant's then and does not
 * bind the owner of the address. It holds where a setting or an admin confirmed the address: the caller may be the
 * banned user.
 */
export function provesUnproven(user: LockedUser, { purpose, relates_to }: TakenToken): boolean {
  const channel = CHANNELS[purpose]
  if (!channel || user[channel] !== relates_to || user[`${channel}_vouched`]) return false
  return !user[`${channel}_confirmed_at`]
}

/** Reports whether the token gives the account's address its first proof, even if an admin vouched for it. */
export function isUnproven(user: LockedUser, { purpose }: TakenToken): boolean {
  const channel = CHANNELS[purpose]
  return channel !== undefined && (!user[`${channel}_confirmed_at`] || user[`${channel}_assumed`])
}

/** Purposes sent to an address that the account has. */
const CHANNELS: Partial<Record<TokenPurpose, Address['channel']>> = {
  confirmation: 'email',
  recovery: 'email',
  phone_confirmation: 'phone',
}

const leaveBanned: Apply = async (deps, trx, { user, token, passwordHash }, log) => {
  const channel = CHANNELS[token.purpose]
  if (!channel) throw apiError('user_banned')
  const userId = await takeOver(deps, trx, log, user, { channel, value: token.relates_to })
  if (passwordHash) await setPassword(trx, userId, passwordHash, deps.now())
  return { action: 'login', traits: { provider: channel }, userId }
}

const EFFECTS: Record<TokenPurpose, Apply> = {
  confirmation: async (deps, trx, redemption, log) => {
    const { user, token, type, passwordHash, isBound } = redemption
    const now = deps.now()
    requireOwnAddress(user.email, token)
    const hasPassword = await settleClaim(deps, trx, redemption)
    if (!hasPassword && user.invited_at && type === 'signup' && !passwordHash) {
      throw apiError('validation_failed', { message: 'Invited users must specify a password in the signup type' })
    }
    if (!hasPassword && passwordHash) await setPassword(trx, user.id, passwordHash, now)
    await confirmAddress(trx, user.id, 'email', now)
    await setIdentityVerified(trx, user.id, { channel: 'email', value: token.relates_to }, now)
    if (token.external_account) {
      await linkProvenAccount(deps, trx, log, token, isBound)
    }
    return { action: 'user_signedup', traits: { provider: 'email' } }
  },

  recovery: async (deps, trx, redemption, log) => {
    const { user, token } = redemption
    requireOwnAddress(user.email, token)
    const login = { action: 'login', traits: { provider: 'email' } } as const
    if (user.email_assumed) {
      const address = { channel: 'email', value: token.relates_to } as const
      return { ...login, userId: await takeOver(deps, trx, log, user, address) }
    }
    if (user.email_confirmed_at) return login
    await settleClaim(deps, trx, redemption)
    await confirmAddress(trx, user.id, 'email', deps.now())
    await setIdentityVerified(trx, user.id, { channel: 'email', value: token.relates_to }, deps.now())
    return { action: 'user_signedup', traits: { provider: 'email' } }
  },

  email_change_current: changeEmail,
  email_change_new: changeEmail,

  phone_confirmation: async (deps, trx, redemption, log) => {
    const { user, token } = redemption
    requireOwnAddress(user.phone, token)
    const traits = { provider: 'phone' }
    if (user.phone_assumed) {
      const address = { channel: 'phone', value: token.relates_to } as const
      return { action: 'login', traits, userId: await takeOver(deps, trx, log, user, address) }
    }
    if (user.phone_confirmed_at) return { action: 'login', traits }
    await settleClaim(deps, trx, redemption)
    await confirmAddress(trx, user.id, 'phone', deps.now())
    const identity = { id: deps.newId(), userId: user.id, provider: 'phone', address: user.phone ?? '' } as const
    await putProvenIdentity(trx, { ...identity, now: deps.now() })
    return { action: 'user_signedup', traits }
  },

  phone_change: async (deps, trx, { user, token, acceptLanguage }, log) => {
    const phone = token.relates_to
    if (user.phone_change !== phone) throw apiError('otp_expired')
    const before = (await findUserById(trx, user.id)) as User
    await displaceRegistrant(deps, trx, log, before, { channel: 'phone', value: phone })
    await refuseTakenPhone(trx, phone, before.aud, user.id)
    await applyPhoneChange(trx, user.id, phone, 'proven', deps.now())
    const identity = { id: deps.newId(), userId: user.id, provider: 'phone', address: phone } as const
    const isNew = await putProvenIdentity(trx, { ...identity, now: deps.now() })
    await notifyPhoneChange(deps, trx, before, phone, isNew, acceptLanguage)
    return { action: 'user_modified' }
  },

  // Redeemed by a change of password (../account/), never here.
  reauthentication: async () => {
    throw apiError('otp_expired')
  },
}

/** The first of two addresses is recorded; the second makes the change. */
async function changeEmail(
  deps: Deps,
  trx: Transaction<DB>,
  { user, token, acceptLanguage }: Redemption,
  log: AuditLog,
): Promise<Effect | undefined> {
  const email = user.email_change
  if (!email) throw apiError('otp_expired')
  requireOwnAddress(token.purpose === 'email_change_new' ? email : user.email, token)
  const now = deps.now()
  const before = (await findUserById(trx, user.id)) as User
  if (needsBothAddresses(deps, user) && (await recordFirstConfirmation(trx, user.id, now))) {
    const traits = { side: token.purpose === 'email_change_new' ? 'new' : 'current' }
    await audit(deps, trx, log, { action: 'email_change_agreed', actor: before, traits })
    return undefined
  }
  await displaceRegistrant(deps, trx, log, before, { channel: 'email', value: email })
  await refuseTakenEmail(trx, email, before.aud, user.id)
  await applyEmailChange(trx, user.id, email, 'proven', now)
  await putProvenIdentity(trx, { id: deps.newId(), userId: user.id, provider: 'email', address: email, now })
  if (before.email && before.email_confirmed_at && before.email !== email) {
    const details = { OldEmail: before.email }
    // Always sent: a thief needs only a session and a mailbox, or a scanner that opens the link to the old address. An
    // assumed address may be a stranger's.
    const delivery = { acceptLanguage, to: before.email, always: !user.email_assumed }
    await notify(deps, trx, { ...before, email }, 'email_changed_notification', details, delivery)
  }
  return { action: 'user_modified' }
}

/** Refuses a proof of an address that an admin has replaced since. */
function requireOwnAddress(address: string | null, token: TakenToken): void {
  if (address !== token.relates_to) throw apiError('otp_expired')
}

/**
 * Replaces an account's registered password and data by its claim on the first proof; returns whether it has a
 * password. An identity whose provider did not verify the address may be a stranger's: it stays only if its own sign-in
 * sent the token.
 */
async function settleClaim(deps: Deps, trx: Transaction<DB>, { user, token }: Redemption): Promise<boolean> {
  const isFirstProof = !user.email_confirmed_at && !user.phone_confirmed_at
  // A request that a limit refused has left a claim, and an admin invited: neither is the provider's sign-in.
  const isDisputed = token.sets_password || user.claim !== null || user.invited_at !== null
  if (isFirstProof && isDisputed) await forgetProviders(deps, trx, user.id, token.relates_to)
  const { claim } = user
  if (!isFirstProof || !claim || (await hasProviderIdentity(trx, user.id))) return user.password_hash !== null
  await applyClaim(trx, user, claim, deps.now())
  return claim.password_hash !== null
}

async function forgetProviders(deps: Deps, trx: Transaction<DB>, userId: string, address: string): Promise<void> {
  if (!(await deleteProviderIdentities(trx, userId))) return
  await endEntries(trx, userId)
  await putProvenIdentity(trx, { id: deps.newId(), userId, provider: 'email', address, now: deps.now() })
}
