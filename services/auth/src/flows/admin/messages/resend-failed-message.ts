import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { messageExists, requeueFailed, type VisibleMessage } from '../../../core/outbox/messages.store.ts'
import { queueJob, recipientOf } from '../../../core/outbox/outbox.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'

type ResendDeps = Pick<Deps, 'db' | 'queue' | 'outboxKey' | 'encryption' | 'now' | 'newRowId' | 'config'>

/** Sends a failed message again; its link or code lives from the moment it leaves. */
export function resendFailedMessage(
  deps: ResendDeps,
  log: AuditLog,
  actor: Actor,
  id: string,
): Promise<VisibleMessage> {
  return deps.db.transaction().execute(async (trx) => {
    const requeued = await requeueFailed(trx, id, deps.now())
    if (!requeued) {
      if (!(await messageExists(trx, id))) throw noSuchMessage()
      throw apiError('validation_failed', { status: 422, message: 'Only a failed message can be sent again' })
    }
    const { sealed: _sealed, ...message } = requeued
    await queueJob(deps, trx, { ...message, to: recipientOf(deps, requeued) })
    const { user_id, channel, kind } = message
    const traits = { message_id: id, user_id, channel, kind }
    await audit(deps, trx, log, { action: 'message_retried', actor, traits })
    return message
  })
}

export const noSuchMessage = () => apiError('not_found', { message: 'There is no such message' })
