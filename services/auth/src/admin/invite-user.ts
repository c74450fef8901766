import type { Transaction } from 'kysely'
import { type Actor, type AuditLog, audit } from '../audit/audit.ts'
import type { DB, Metadata } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { type MailContext, sendLinkMail } from '../one-time-messages/link-mail.ts'
import { withMessagesCounted } from '../one-time-messages/message-budget.ts'
import { requireModestMetadata } from '../users/metadata.ts'
import { insertAccount, newAccount } from '../users/new-account.ts'
import { findUserById, lockAndReadUser, setInvited, type User } from '../users/users.store.ts'

export interface Invitation {
  email: string
  data: Metadata
  audience: string
  context: MailContext
}

/** Invites a new address, or again one that has not confirmed yet; whoever follows the link chooses the password. */
export async function inviteUser(
  deps: Deps,
  log: AuditLog,
  admin: Actor,
  { email, data, audience, context }: Invitation,
): Promise<User> {
  requireModestMetadata(data)
  return withMessagesCounted(deps, [{ channel: 'email', value: email }], () =>
    deps.db.transaction().execute(async (trx) => {
      const { user } = await lockUnproven(deps, trx, { email, data, audience }, null)
      await sendLinkMail(deps, trx, { kind: 'invite', to: email, user, password: { hash: null }, ...context })
      await setInvited(trx, user.id, deps.now())
      await auditInvitation(deps, trx, log, admin, user)
      return (await findUserById(trx, user.id)) as User
    }),
  )
}

/** The unconfirmed account of the address, made if need be with this password. Throws email_exists when somebody has proven it. */
export async function lockUnproven(
  deps: Deps,
  trx: Transaction<DB>,
  { email, data, audience }: Omit<Invitation, 'context'>,
  passwordHash: string | null,
): Promise<{ user: User; isNew: boolean }> {
  const account = newAccount(deps, { address: { channel: 'email', value: email }, data, audience }, passwordHash)
  const id = await insertAccount(deps, trx, account)
  const user = await lockAndReadUser(trx, id)
  if (!user || user.email !== email || user.email_confirmed_at) throw apiError('email_exists')
  return { user, isNew: id === account.user.id }
}

export const auditInvitation = (deps: Deps, trx: Transaction<DB>, log: AuditLog, admin: Actor, user: User) =>
  audit(deps, trx, log, { action: 'user_invited', actor: admin, target: user })
