import { TEST_MESSAGE_ID } from '../../adapters/test-codes.ts'
import { type AuditLog, audit } from '../../core/audit/audit.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import type { Address } from '../../core/users/address.ts'
import { lockUser, setSentAt, type User } from '../../core/users/users.store.ts'
import { sendCodeMail, sendCodeSms } from '../../core/verification-messages/code-message.ts'
import { isTestAddress, withMessagesCounted } from '../../core/verification-messages/message-budget.ts'
import { withinGaps } from '../../core/verification-messages/send-gap.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/** Sends the nonce to the user's proven e-mail address, or else number, and returns the id of the message. */
export async function sendNonce(
  deps: Deps,
  log: AuditLog,
  { user, session }: LiveCaller,
  acceptLanguage: string | undefined,
): Promise<string> {
  const address = provenAddress(user)
  const messageId = deps.newId()
  const work = () =>
    deps.db.transaction().execute(async (trx) => {
      await lockUser(trx, user.id)
      const message = {
        user,
        to: address.value,
        purpose: 'reauthentication',
        sessionId: session.id,
        messageId,
      } as const
      if (address.channel === 'email') await sendCodeMail(deps, trx, { ...message, acceptLanguage })
      else await sendCodeSms(deps, trx, { ...message, channel: 'sms' })
      await setSentAt(trx, user.id, 'reauthentication_sent_at', deps.now())
      await audit(deps, trx, log, { action: 'user_reauthenticate_requested', actor: user })
    })
  await withinGaps(deps, [{ kind: 'reauthentication', key: address.value }], () =>
    withMessagesCounted(deps, [{ ...address, share: { userId: user.id } }], work),
  )
  return address.channel === 'phone' && isTestAddress(deps, address) ? TEST_MESSAGE_ID : messageId
}

function provenAddress(user: User): Address {
  if (user.email) {
    if (!user.email_confirmed_at) throw apiError('email_not_confirmed', { status: 422 })
    return { channel: 'email', value: user.email }
  }
  if (user.phone) {
    if (!user.phone_confirmed_at) throw apiError('phone_not_confirmed', { status: 422 })
    return { channel: 'phone', value: user.phone }
  }
  throw apiError('validation_failed', {
    message: 'Reauthentication requires the user to have an email or a phone number',
  })
}
