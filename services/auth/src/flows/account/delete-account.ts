import { type AuditLog, audit } from '../../core/audit/audit.ts'
import { type GivenProof, performActs } from '../../core/freshness/require-fresh.ts'
import { notify } from '../../core/outbox/notify.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import { deleteUserRow } from '../../core/users/change-user.store.ts'
import type { Deps } from '../../deps.ts'

interface Deletion {
  caller: LiveCaller
  proof: GivenProof
  log: AuditLog
  acceptLanguage: string | undefined
}

/** Deletes the caller's account with all that belongs to it; the audit log stays. Its address gets a last mail. */
export async function deleteAccount(deps: Deps, { log, acceptLanguage, ...request }: Deletion): Promise<void> {
  await performActs(
    deps,
    request,
    ['deleting the account'],
    () => undefined,
    async (trx, user) => {
      await audit(deps, trx, log, { action: 'user_deleted', actor: user })
      await deleteUserRow(trx, user.id)
      const details = { UserID: user.id }
      await notify(deps, trx, { ...user, id: null }, 'account_deleted_notification', details, { acceptLanguage })
    },
  )
}
