// Messages that a caller requests by address: POST /otp, /magiclink, /recover and /resend. The route answers at once
// and alike for every address. The worker's half does the same work for an unknown address, so that time reveals
// nothing. Tests: here, test/equal-work.test.ts, test/registered-first.test.ts.
import { isDeepStrictEqual } from 'node:util'
import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { hookBehind } from '../../core/hooks/hooks.ts'
import { type Asking, withHooks } from '../../core/hooks/questions.ts'
import { insertAccount } from '../../core/identities/insert-account.ts'
import { type Account, confirmed, newAccount } from '../../core/identities/new-account.ts'
import { claimOf, recordClaim } from '../../core/users/address-claims.ts'
import { releaseAddress } from '../../core/users/registrants.store.ts'
import { findUserByAddress, lockAndReadUser, setSentAt, type User } from '../../core/users/users.store.ts'
import { sendCodeSms } from '../../core/verification-messages/code-message.ts'
import { isUnconfirmed, sendConfirmation } from '../../core/verification-messages/confirmation.ts'
import { sendLinkMail } from '../../core/verification-messages/link-mail.ts'
import type { MessageRequest } from '../../core/verification-messages/message-request.ts'
import { pretendMessage } from '../../core/verification-messages/pretend-message.ts'
import { takeMailboxSlot } from '../../core/verification-messages/send-gap.ts'
import type { Claim, DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { countSignUp } from '../../metrics.ts'
import { decoyUser } from './decoy-user.ts'

/**
 * The worker's half of POST /otp and /magiclink: a link or code for the account of the address or a new one. It
 * confirms an account without a proven address, which loses its password: a stranger may have chosen it.
 */
export async function sendSignIn(deps: Deps, log: AuditLog, request: MessageRequest): Promise<void> {
  try {
    const isNew = await withHooks(deps, log, (asking) =>
      deps.db.transaction().execute((trx) => sendIn(asking, trx, log, request)),
    )
    if (isNew) countSignUp('otp')
  } catch (error) {
    const hook = hookBehind(error)
    // The message is queued and must leave; the failure is in the log of hooks.
    if (hook === 'after-user-created') return
    // The caller has its answer: the hook refuses in the request already, unless an account was deleted meanwhile.
    const isRefused = (error as { code?: unknown }).code === 'hook_rejected'
    if (hook !== 'before-user-created' || !isRefused) throw error
    log.info({ code: 'hook_rejected' }, 'message not sent: a hook refused its user')
  }
}

/** Sends the message that fits. Returns whether the account is new. */
async function sendIn(deps: Asking<Deps>, trx: Transaction<DB>, log: AuditLog, request: MessageRequest) {
  const { address } = request
  // The claim first: the order of locks.
  const { data = {} } = request
  const claim = await recordClaim(trx, claimOf(deps, { ...request, passwordHash: null, data }))
  await releaseAddress(deps, trx, address, request.audience)
  const known = await lockExisting(trx, request)
  const isProven = known !== undefined && !isUnconfirmed(known, address)
  const isRefused = request.isOverCap && !((await takeMailboxSlot(deps, trx, address.value, isProven)) && isProven)
  const user = isRefused ? undefined : (known ?? (await register(deps, trx, log, request, claim)))
  if (!user) {
    const unknown = decoyUser(deps, request)
    if (!known) await lockAndReadUser(trx, unknown.id)
    await pretendMessage(deps, trx, log, unknown, 'magic_link', request)
    return false
  }
  if (isUnconfirmed(user, address)) {
    await sendConfirmation(deps, trx, user, { ...request, isClaim: true })
    const traits = { provider: address.channel }
    await audit(deps, trx, log, { action: 'user_confirmation_requested', actor: user, traits })
  } else await sendToConfirmed(deps, trx, log, user, request)
  return !known
}

async function sendToConfirmed(deps: Deps, trx: Transaction<DB>, log: AuditLog, user: User, request: MessageRequest) {
  const { address, context, pkce, smsChannel = 'sms', messageId, isOverCap } = request
  const message = { user, to: address.value, messageId }
  if (address.channel === 'email') {
    await audit(deps, trx, log, { action: 'user_recovery_requested', actor: user })
    await sendLinkMail(deps, trx, { ...message, ...context, kind: 'magic_link', pkce, hasLongCode: isOverCap })
    await setSentAt(trx, user.id, 'recovery_sent_at', deps.now())
  } else {
    await audit(deps, trx, log, { action: 'user_recovery_requested', actor: user, traits: { channel: smsChannel } })
    await sendCodeSms(deps, trx, {
      ...message,
      purpose: 'phone_confirmation',
      channel: smsChannel,
      hasLongCode: isOverCap,
    })
    await setSentAt(trx, user.id, 'confirmation_sent_at', deps.now())
  }
}

async function lockExisting(trx: Transaction<DB>, { address, audience }: MessageRequest) {
  const found = await findUserByAddress(trx, address, audience)
  return found && lockAndReadUser(trx, found.id)
}

/** Makes the account of an unknown address, as it is stored. */
export function signInAccount(deps: Deps, about: Parameters<typeof newAccount>[1]): Account {
  const { mail, sms } = deps.config
  const made = newAccount(deps, about, null)
  const autoconfirm = about.address.channel === 'email' ? mail.autoconfirm : sms.autoconfirm
  return autoconfirm ? confirmed(made) : made
}

async function register(
  deps: Asking<Deps>,
  trx: Transaction<DB>,
  log: AuditLog,
  request: MessageRequest,
  claim: Claim,
) {
  if (!request.createUser || deps.config.signup.disabled) return undefined
  const { address, audience, admitted } = request
  const { data } = claim
  const account = signInAccount(deps, { address, data, audience, ...(admitted && { id: admitted.id }) })
  // Another request for the address since then has changed the data.
  const isAdmitted = admitted !== undefined && isDeepStrictEqual(admitted.data, data)
  const id = await insertAccount(deps, trx, account, { isAdmitted })
  // Registered meanwhile; the caller does not learn it.
  if (id !== account.user.id) return undefined
  if (account.user[`${address.channel}_confirmed_at`]) {
    const traits = { provider: address.channel }
    await audit(deps, trx, log, { action: 'user_signedup', actor: account.user, traits })
  }
  return lockAndReadUser(trx, id)
}
