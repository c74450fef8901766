import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { noteChange } from '../../db/watched-users.ts'
import type { FailedMessage } from './messages.store.ts'

/** Reports a message that is given up to the operator's servers, unless it was only pretended. */
export async function reportFailed(trx: Transaction<DB>, message: FailedMessage): Promise<void> {
  const { id, user_id: userId, channel, kind, last_error: error, lifetime_seconds: lifetime } = message
  if (lifetime === 0) return
  await noteChange(trx, { userId, event: 'message.failed', about: { message: { id, channel, kind, error } } })
}
