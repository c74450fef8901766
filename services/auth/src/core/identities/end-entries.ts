import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { deleteAllFactors } from '../factors/factors.store.ts'
import { deleteRecoveryCodes } from '../factors/recovery-codes.store.ts'
import { endSessions } from '../sessions/end-sessions.store.ts'

/**
 * Ends the sessions, second factors and recovery codes of an account whose address somebody else than its registrant has proven.
 * Identities, password and data are the caller's part: which of them stay depends on the proof.
 */
export async function endEntries(trx: Transaction<DB>, userId: string): Promise<void> {
  await endSessions(trx, userId, 'global', '')
  await deleteAllFactors(trx, userId)
  await deleteRecoveryCodes(trx, userId)
}
