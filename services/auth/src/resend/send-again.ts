import type { FastifyBaseLogger } from 'fastify'
import type { Transaction } from 'kysely'
import { audit } from '../audit/audit.ts'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { sendEmailChange, sendPhoneChange } from '../one-time-messages/address-change.ts'
import { isUnconfirmed, sendConfirmation } from '../one-time-messages/confirmation.ts'
import type { MessageRequest } from '../one-time-messages/message-request.ts'
import { findUserByEmail, findUserById, findUserByPhone, lockUser, type User } from '../users/users.store.ts'

/** The worker's half of POST /resend: sends again what is still pending; nothing where nothing is. */
export async function sendAgain(deps: Deps, log: FastifyBaseLogger, request: MessageRequest): Promise<void> {
  const { address, audience } = request
  await deps.db.transaction().execute(async (trx) => {
    const found = await (address.channel === 'email' ? findUserByEmail : findUserByPhone)(trx, address.value, audience)
    if (!found || !(await lockUser(trx, found.id))) return
    const user = (await findUserById(trx, found.id)) as User
    await SENDERS[request.type]?.(deps, trx, log, user, request)
  })
}

type Sender = (
  deps: Deps,
  trx: Transaction<DB>,
  log: FastifyBaseLogger,
  user: User,
  request: MessageRequest,
) => Promise<void>

const SENDERS: Partial<Record<MessageRequest['type'], Sender>> = {
  confirmation: async (deps, trx, log, user, request) => {
    const { address } = request
    if (!isUnconfirmed(user, address)) return
    await sendConfirmation(deps, trx, user, request)
    const action = address.channel === 'email' ? 'user_confirmation_requested' : 'user_recovery_requested'
    await audit(deps, trx, log, { action, actor: user, traits: { provider: address.channel } })
  },
  email_change: async (deps, trx, _log, user, { context, pkce, messageId }) => {
    if (user.email_change) await sendEmailChange(deps, trx, user, user.email_change, { context, pkce, messageId })
  },
  phone_change: async (deps, trx, _log, user, { smsChannel = 'sms', messageId }) => {
    if (user.phone_change) await sendPhoneChange(deps, trx, user, user.phone_change, smsChannel, messageId)
  },
}
