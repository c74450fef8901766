import { createHash } from 'node:crypto'
import type { Transaction } from 'kysely'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { deleteAllFactors } from '../../../core/factors/factors.store.ts'
import { deleteRecoveryCodes } from '../../../core/factors/recovery-codes.store.ts'
import { anonymiseIdentity, listIdentityKeys } from '../../../core/identities/identities.store.ts'
import { deleteAuthCodes } from '../../../core/one-time-tokens/auth-codes.store.ts'
import { deleteOneTimeTokens } from '../../../core/one-time-tokens/one-time-tokens.store.ts'
import { deleteAllPasskeys } from '../../../core/passkeys/passkeys.store.ts'
import { endSessions } from '../../../core/sessions/end-sessions.store.ts'
import { anonymiseUser, deleteUserRow } from '../../../core/users/change-user.store.ts'
import { lockAndReadUser, type User } from '../../../core/users/users.store.ts'
import type { DB } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'
import type { UserAdminDeps } from './create-user.ts'

/**
 * `hard` deletes the row and all of the user's data. `soft` keeps the id for references from other systems, anonymised,
 * and frees the addresses. Throws user_not_found (404).
 */
export type Deletion = 'hard' | 'soft'

export async function deleteUser(
  deps: UserAdminDeps,
  log: AuditLog,
  actor: Actor,
  userId: string,
  deletion: Deletion,
): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    const user = await lockAndReadUser(trx, userId)
    if (!user) throw apiError('user_not_found', { status: 404, message: 'User not found' })
    await audit(deps, trx, log, { action: 'user_deleted', actor, target: user })
    if (deletion === 'hard') await deleteUserRow(trx, userId)
    else if (!user.deleted_at) await softDelete(trx, user, deps.now())
  })
}

async function softDelete(trx: Transaction<DB>, user: User, now: Date): Promise<void> {
  await endSessions(trx, user.id)
  await deleteOneTimeTokens(trx, user.id)
  await deleteAuthCodes(trx, user.id)
  await deleteAllPasskeys(trx, user.id)
  await deleteAllFactors(trx, user.id)
  await deleteRecoveryCodes(trx, user.id)
  for (const { id, provider, provider_id: providerId } of await listIdentityKeys(trx, user.id)) {
    await anonymiseIdentity(trx, id, pseudonym(user.id, `${provider}:${providerId}`), now)
  }
  await anonymiseUser(trx, user.id, pseudonymsOf(user), now)
}

/**
 * The reference's length (contract/auth-core.md 11.19). An absent address gets a pseudonym too, so that absence is
 * hidden.
 */
const PHONE_LENGTH = 15

const pseudonymsOf = ({ id, email, phone, email_change, phone_change }: User) => ({
  // The column requires lower case.
  email: pseudonym(id, email ?? '').toLowerCase(),
  phone: pseudonym(id, phone ?? '').slice(0, PHONE_LENGTH),
  email_change: pseudonym(id, email_change ?? ''),
  phone_change: pseudonym(id, phone_change ?? '').slice(0, PHONE_LENGTH),
})

const pseudonym = (userId: string, value: string) =>
  createHash('sha256')
    .update(userId + value)
    .digest('base64url')
