import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { noteChange, wantsEvent } from '../../db/watched-users.ts'
import type { FailedMessage } from './messages.store.ts'

const EVENT = 'message.failed'

/** Locks the user whom the report shows. All transactions do so before they change a message. */
export async function lockReported(trx: Transaction<DB>, { user_id: id }: Pick<FailedMessage, 'user_id'>) {
  if (id === null || !wantsEvent(trx, EVENT)) return
  await trx.selectFrom('users').select('id').where('id', '=', id).forNoKeyUpdate().execute()
}

/** Reports a message that is given up to the operator's servers, unless it was only pretended. */
export async function reportFailed(trx: Transaction<DB>, message: FailedMessage): Promise<void> {
  const { id, user_id: userId, channel, kind, last_error: error, lifetime_seconds: lifetime } = message
  if (lifetime === 0) return
  await noteChange(trx, { userId, event: EVENT, about: { message: { id, channel, kind, error } } })
}
