import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { endSessionsStartedBy } from '../sessions/end-sessions.store.ts'
import { deletePasskeyRow, type Passkey } from './passkeys.store.ts'

/** Removes a passkey and ends the sessions that it started, with the user locked; the session `exceptId` stays. */
export async function removePasskey(trx: Transaction<DB>, passkey: Passkey, exceptId?: string): Promise<void> {
  const { id, user_id: userId } = passkey
  await deletePasskeyRow(trx, id)
  await endSessionsStartedBy(trx, { userId, identityId: id, exceptId })
}
