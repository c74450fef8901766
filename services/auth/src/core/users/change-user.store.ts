import { sql, type Transaction, type UpdateObject } from 'kysely'
import { deleteSessions } from '../../db/ended-sessions.store.ts'
import { eraseEvents } from '../../db/erased-events.store.ts'
import type { DB } from '../../db/tables.ts'
import { wantsEvent } from '../../db/watched-users.ts'
import type { Address } from './address.ts'

export type UserChanges = UpdateObject<DB, 'users'>

export const noAddress = (channel: Address['channel']): UserChanges => ({
  [channel]: null,
  [`${channel}_confirmed_at`]: null,
  [`${channel}_assumed`]: false,
  [`${channel}_vouched`]: false,
})

/** No pending change of this kind. */
export const noRequest = (channel: Address['channel']): UserChanges =>
  channel === 'email'
    ? { email_change: null, email_change_sent_at: null, email_change_session_id: null, email_change_confirm_status: 0 }
    : { phone_change: null, phone_change_sent_at: null, phone_change_session_id: null }

/** Throws a unique violation when another user of the audience has the address. */
export async function changeUser(trx: Transaction<DB>, id: string, changes: UserChanges, now: Date): Promise<void> {
  await trx
    .updateTable('users')
    .set({ ...changes, updated_at: now })
    .where('id', '=', id)
    .execute()
}

/** Deletes a user, whose row is locked, and all rows that belong to it; the audit log stays. */
export async function deleteUserRow(trx: Transaction<DB>, id: string): Promise<void> {
  await eraseEvents(trx, [id])
  // A cascade deletes them without events.
  if (wantsEvent(trx, 'session.ended')) await deleteSessions(trx, sql`user_id = ${id}`)
  await trx.deleteFrom('users').where('id', '=', id).execute()
}

type Pseudonyms = Pick<UserChanges, 'email' | 'phone' | 'email_change' | 'phone_change'>

/** Removes personal data from the row, which is locked, and from events; id, times and role stay. */
export async function anonymiseUser(trx: Transaction<DB>, id: string, names: Pseudonyms, now: Date): Promise<void> {
  await eraseEvents(trx, [id])
  const noData = { password_hash: null, claim: null, app_metadata: '{}', user_metadata: '{}' }
  const noSession = { email_change_session_id: null, phone_change_session_id: null }
  await changeUser(trx, id, { ...names, ...noData, ...noSession, email_change_confirm_status: 0, deleted_at: now }, now)
}
