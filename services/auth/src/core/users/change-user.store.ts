import type { Transaction, Updateable } from 'kysely'
import type { DB, UsersTable } from '../../db/tables.ts'
import type { Address } from './address.ts'

export type UserChanges = Updateable<UsersTable>

export const noAddress = (channel: Address['channel']): UserChanges => ({
  [channel]: null,
  [`${channel}_confirmed_at`]: null,
  [`${channel}_assumed`]: false,
  [`${channel}_vouched`]: false,
})

/** Throws a unique violation when another user of the audience has the address. */
export async function changeUser(trx: Transaction<DB>, id: string, changes: UserChanges, now: Date): Promise<void> {
  await trx
    .updateTable('users')
    .set({ ...changes, updated_at: now })
    .where('id', '=', id)
    .execute()
}

/** Deletes a user and all rows that belong to it; the audit log stays. */
export async function deleteUserRow(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.deleteFrom('users').where('id', '=', id).execute()
}

export interface Pseudonyms {
  email: string
  phone: string
  emailChange: string
  phoneChange: string
}

/** Removes personal data from the row; id, times and role stay. */
export const anonymiseUser = (trx: Transaction<DB>, id: string, names: Pseudonyms, now: Date): Promise<void> =>
  changeUser(
    trx,
    id,
    {
      email: names.email,
      phone: names.phone,
      email_change: names.emailChange,
      phone_change: names.phoneChange,
      email_change_confirm_status: 0,
      password_hash: null,
      claim: null,
      app_metadata: '{}',
      user_metadata: '{}',
      deleted_at: now,
    },
    now,
  )
