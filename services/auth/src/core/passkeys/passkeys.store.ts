import { prepared } from '@services/common/database/prepared-statement'
import type { Insertable, Kysely, Selectable, Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { toUser, type User, userJson } from '../users/users.store.ts'

export type Passkey = Selectable<DB['passkeys']>

/** Throws a unique violation if the key is anyone's passkey. */
export async function insertPasskey(trx: Transaction<DB>, passkey: Insertable<DB['passkeys']>): Promise<void> {
  await trx.insertInto('passkeys').values(passkey).execute()
}

/** Oldest first. */
export function listPasskeys(db: Kysely<DB>, userId: string): Promise<Passkey[]> {
  return db
    .selectFrom('passkeys')
    .selectAll()
    .where('user_id', '=', userId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

const selectOwned = prepared((db: Kysely<DB>, { userId, credentialId }: { userId: string; credentialId: string }) =>
  db
    .selectFrom('passkeys')
    .innerJoin('users', 'users.id', 'passkeys.user_id')
    .select(['passkeys.id', 'passkeys.credential_id', 'passkeys.public_key', 'passkeys.sign_count'])
    .select(['passkeys.friendly_name', 'passkeys.backup_eligible', 'passkeys.user_verified', userJson])
    .where('passkeys.credential_id', '=', credentialId)
    .where('passkeys.user_id', '=', userId)
    .where('users.deleted_at', 'is', null),
)

export type OwnedPasskey = Awaited<ReturnType<typeof selectOwned>>[number]

/** Finds a passkey by its key and its user, with the user. */
export async function findOwned(
  db: Kysely<DB>,
  owned: { userId: string; credentialId: string },
): Promise<{ passkey: OwnedPasskey; user: User } | undefined> {
  const [found] = await selectOwned(db, owned)
  return found && { passkey: found, user: toUser(found.user) }
}

/** Notes a warning of the user about this passkey; false if there was one since. */
export async function noteWarning(trx: Transaction<DB>, id: string, since: Date, now: Date): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('passkeys')
    .set({ warned_at: now })
    .where('id', '=', id)
    .where((eb) => eb.or([eb('warned_at', 'is', null), eb('warned_at', '<', since)]))
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

export function renamePasskey(trx: Transaction<DB>, userId: string, id: string, name: string) {
  return trx
    .updateTable('passkeys')
    .set({ friendly_name: name })
    .where('id', '=', id)
    .where('user_id', '=', userId)
    .returningAll()
    .executeTakeFirst()
}

export async function deletePasskeyRow(trx: Transaction<DB>, id: string): Promise<void> {
  await trx.deleteFrom('passkeys').where('id', '=', id).execute()
}

export async function deleteAllPasskeys(trx: Transaction<DB>, userId: string): Promise<void> {
  await trx.deleteFrom('passkeys').where('user_id', '=', userId).execute()
}
