import type { Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Address } from './address.ts'

/** What is set directly; a key that is absent stays as it is. */
export interface UserChanges {
  role?: string
  email?: string | null
  phone?: string | null
  email_confirmed_at?: Date | null
  phone_confirmed_at?: Date | null
  email_assumed?: boolean
  phone_assumed?: boolean
  email_vouched?: boolean
  phone_vouched?: boolean
  email_change?: string | null
  email_change_sent_at?: Date | null
  email_change_confirm_status?: number
  phone_change?: string | null
  phone_change_sent_at?: Date | null
  is_anonymous?: boolean
  banned_until?: Date | null
}

/** Takes an address, and what was said of it. */
export const noAddress = (channel: Address['channel']): UserChanges => ({
  [channel]: null,
  [`${channel}_confirmed_at`]: null,
  [`${channel}_assumed`]: false,
  [`${channel}_vouched`]: false,
})

/** Fails with a unique violation when another user of the audience has the address. */
export async function changeUser(trx: Transaction<DB>, id: string, changes: UserChanges, now: Date): Promise<void> {
  await trx
    .updateTable('users')
    .set({ ...changes, updated_at: now })
    .where('id', '=', id)
    .execute()
}

/** With everything that is theirs; the audit log stays. */
export async function deleteUserRow(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.deleteFrom('users').where('id', '=', id).execute()
}

export interface Pseudonyms {
  email: string
  phone: string
  emailChange: string
  phoneChange: string
}

/** Takes from the row what tells whose it was; id, times and role stay. */
export async function anonymiseUser(trx: Transaction<DB>, id: string, names: Pseudonyms, now: Date): Promise<void> {
  await trx
    .updateTable('users')
    .set({
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
      updated_at: now,
    })
    .where('id', '=', id)
    .execute()
}
