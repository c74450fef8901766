import { ApiError } from '@services/common/errors'
import type { Kysely, Transaction } from 'kysely'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { hasLiveToken } from '../../core/one-time-tokens/one-time-tokens.store.ts'
import { CHANGE_PURPOSES } from '../../core/users/end-tokens.ts'
import { releaseAddress } from '../../core/users/registrants.store.ts'
import { findUserByAddress, type LockedAccount, lockAndReadUser, type User } from '../../core/users/users.store.ts'
import {
  sendEmailChange,
  sendPhoneChange,
  withChangesCounted,
} from '../../core/verification-messages/address-change.ts'
import { isUnconfirmed, sendConfirmation } from '../../core/verification-messages/confirmation.ts'
import { isChange, type MessageRequest } from '../../core/verification-messages/message-request.ts'
import { lockDecoy, pretendMessage } from '../../core/verification-messages/pretend-message.ts'
import type { DB } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { decoyUser } from './decoy-user.ts'

/** The worker's half of POST /resend: sends a pending message again, or does the same work for one that is not pending. */
export async function sendAgain(deps: Deps, log: AuditLog, request: MessageRequest): Promise<void> {
  const { address, audience } = request
  await releaseAddress(deps.db, address, audience, deps.now())
  const known = await findUserByAddress(deps.db, address, audience)
  const found = known ?? decoyUser(deps, request)
  try {
    const recipient = await pendingAddress(deps, deps.db, found, request)
    await withChangesCounted(deps, found, recipient ? [recipient] : [], 'strangers', () =>
      deps.db.transaction().execute(async (trx) => {
        const user = known ? await lockAndReadUser(trx, found.id) : await lockDecoy(trx, found)
        if (request.type === 'confirmation' && !(user && isUnconfirmed(user, address))) {
          return pretendMessage(deps, trx, log, decoyUser(deps, request), 'confirmation', request)
        }
        // Replaced by another change meanwhile, whose message is on its way.
        if (!user || (await pendingAddress(deps, trx, user, request))?.value !== recipient?.value) return
        if (isChange(request) && !recipient) return
        await send(deps, trx, log, user, request)
      }),
    )
  } catch (error) {
    // Refused by a limit. The caller has its answer, and a retry would only send the message late.
    if (!(error instanceof ApiError)) throw error
    log.info({ code: error.code, userId: found.id }, 'message not sent again: refused')
  }
}

/** The address of a pending change, which is not the one in the request. */
async function pendingAddress({ now }: Deps, db: Kysely<DB>, user: User, { type }: MessageRequest) {
  if (type !== 'email_change' && type !== 'phone_change') return undefined
  const value = user[type]
  // Any caller may request this, so an expired change stays expired: only its user can request it again.
  if (!value || !(await hasLiveToken(db, user.id, CHANGE_PURPOSES[type], now()))) return undefined
  return { channel: type === 'email_change' ? 'email' : 'phone', value } as const
}

async function send(deps: Deps, trx: Transaction<DB>, log: AuditLog, user: LockedAccount, request: MessageRequest) {
  const { type, address, context, pkce, smsChannel = 'sms', messageId } = request
  if (type === 'confirmation') {
    await sendConfirmation(deps, trx, user, request)
    const action = address.channel === 'email' ? 'user_confirmation_requested' : 'user_recovery_requested'
    await audit(deps, trx, log, { action, actor: user, traits: { provider: address.channel } })
  } else if (type === 'email_change' && user.email_change) {
    await sendEmailChange(deps, trx, user, user.email_change, { context, pkce, messageId })
  } else if (type === 'phone_change' && user.phone_change) {
    await sendPhoneChange(deps, trx, user, user.phone_change, smsChannel, messageId)
  }
}
