import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'
import { apiError } from '../errors.ts'
import { messageExists, requeueFailed, type VisibleMessage } from './messages.store.ts'
import { type OutboxDeps, queueJob } from './outbox.ts'

type RetryDeps = Pick<OutboxDeps, 'queue' | 'now'> & { db: Kysely<DB> }

/** Sends a failed message again, at an admin's word; its link or code counts from when it leaves. */
export function retryMessage(deps: RetryDeps, id: string): Promise<VisibleMessage> {
  return deps.db.transaction().execute(async (trx: Transaction<DB>) => {
    const message = await requeueFailed(trx, id, deps.now())
    if (message) {
      await queueJob(deps, trx, message)
      return message
    }
    if (!(await messageExists(trx, id))) throw noSuchMessage()
    throw apiError('validation_failed', { status: 422, message: 'Only a failed message can be sent again' })
  })
}

export const noSuchMessage = () => apiError('not_found', { message: 'There is no such message' })
