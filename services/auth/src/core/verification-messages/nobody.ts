// What a request for a message costs where nobody has the address: as much as where somebody has. The one rule: each statement
// for an account has one here that finds nothing or writes a row of the same weight, which housekeeping takes away.
import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import { writeForNobody } from '../../db/nobody.store.ts'
import type { DB } from '../../db/tables.ts'
import type { AuditLog } from '../audit/audit.ts'
import { findUserById, lockUser, type User } from '../users/users.store.ts'
import { sendCodeSms } from './code-sms.ts'
import { type LinkMailDeps, sendLinkMail } from './link-mail.ts'
import type { MessageRequest } from './message-request.ts'

type NobodyDeps = LinkMailDeps & {
  config: Pick<Config, 'auditInDatabase' | 'jwt' | 'mail' | 'siteUrl' | 'sms'>
}

/** Looks for nobody, as `lockAndReadUser` does for somebody. */
export async function lockNobody(trx: Transaction<DB>, { id }: User): Promise<undefined> {
  await lockUser(trx, id)
  await findUserById(trx, id)
}

/** Does what sending a message to an account does; none leaves. */
export async function pretendMessage(
  deps: NobodyDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  user: User,
  kind: 'recovery' | 'magic_link' | 'confirmation',
  { address, context, pkce, smsChannel = 'sms', messageId }: MessageRequest,
): Promise<void> {
  log.info({ kind }, 'message pretended: nobody has the address, or nothing is to be sent to it')
  if (deps.config.auditInDatabase) await writeForNobody(trx, [`audit ${address.value}`], deps.now())
  const message = { user, to: address.value, messageId, isPretended: true, isNobodys: true }
  if (address.channel === 'email') await sendLinkMail(deps, trx, { ...message, ...context, kind, pkce })
  else await sendCodeSms(deps, trx, { ...message, purpose: 'phone_confirmation', channel: smsChannel })
  await writeForNobody(trx, [`sent ${address.value}`], deps.now())
}
