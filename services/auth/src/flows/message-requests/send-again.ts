import { ApiError } from '@services/common/errors'
import type { Kysely, Transaction } from 'kysely'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { findLiveTokens } from '../../core/one-time-tokens/one-time-tokens.store.ts'
import { isRequesterAccepted } from '../../core/sessions/accepted-session.ts'
import { CHANGE_PURPOSES } from '../../core/users/end-tokens.ts'
import { releaseAddress } from '../../core/users/registrants.store.ts'
import { findUserByAddress, type LockedAccount, lockAndReadUser, type User } from '../../core/users/users.store.ts'
import {
  type PendingChange,
  repeatEmailChange,
  sendPhoneChange,
  withRepeatCounted,
} from '../../core/verification-messages/address-change.ts'
import { isUnconfirmed, sendConfirmation } from '../../core/verification-messages/confirmation.ts'
import { isChange, type MessageRequest } from '../../core/verification-messages/message-request.ts'
import { pretendMessage } from '../../core/verification-messages/pretend-message.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { decoyUser } from './decoy-user.ts'

/**
 * The worker's half of POST /resend: sends a pending message again, or does the same work for one that is not pending.
 */
export async function sendAgain(deps: Deps, log: AuditLog, request: MessageRequest): Promise<void> {
  const { address, audience } = request
  await releaseAddress(deps, deps.db, address, audience)
  const found = (await findUserByAddress(deps.db, address, audience)) ?? decoyUser(deps, request)
  try {
    const pending = await pendingChange(deps, deps.db, found, request)
    await withRepeatCounted(deps, found, pending, () =>
      deps.db.transaction().execute(async (trx) => {
        const user = await lockAndReadUser(trx, found.id)
        if (request.type === 'confirmation' && !(user && isUnconfirmed(user, address))) {
          return pretendMessage(deps, trx, log, decoyUser(deps, request), 'confirmation', request)
        }
        // Replaced by another change meanwhile, whose message is on its way.
        const change = user && (await pendingChange(deps, trx, user, request))
        if (!user || change?.address.value !== pending?.address.value) return
        if (isChange(request) && !change) return
        await send(deps, trx, log, user, request, change)
      }),
    )
  } catch (error) {
    // Refused by a limit. The caller has its answer, and a retry would only send the message late.
    if (!(error instanceof ApiError)) throw error
    log.info({ code: error.code, userId: found.id }, 'message not sent again: refused')
  }
}

/**
 * Finds the change that the request means, which is not to the address in it. Any caller may request this, so a change
 * that has expired, or whose session has ended, stays so: only its user can request it again.
 */
async function pendingChange(
  deps: Deps,
  db: Kysely<DB>,
  user: User,
  { type }: MessageRequest,
): Promise<PendingChange | undefined> {
  if (type !== 'email_change' && type !== 'phone_change') return undefined
  const value = user[type]
  const tokens = value ? await findLiveTokens(db, user.id, CHANGE_PURPOSES[type], deps.now()) : []
  for (const { session_id: sessionId } of tokens) {
    if (!(await isRequesterAccepted(deps, db, { userId: user.id, sessionId }))) return undefined
  }
  if (!value || tokens.length === 0) return undefined
  return { address: { channel: type === 'email_change' ? 'email' : 'phone', value }, tokens }
}

async function send(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  user: LockedAccount,
  request: MessageRequest,
  change: PendingChange | undefined,
) {
  const { type, address, context, pkce, smsChannel = 'sms', messageId } = request
  if (type === 'confirmation') {
    await sendConfirmation(deps, trx, user, request)
    const action = address.channel === 'email' ? 'user_confirmation_requested' : 'user_recovery_requested'
    await audit(deps, trx, log, { action, actor: user, traits: { provider: address.channel } })
  } else if (change?.address.channel === 'email') {
    await repeatEmailChange(deps, trx, user, change, { context, pkce, messageId })
  } else if (change) {
    const sessionId = change.tokens[0]?.session_id ?? null
    const order = { channel: smsChannel, sessionId, messageId, isRepeat: true }
    await sendPhoneChange(deps, trx, user, change.address.value, order)
  }
}
