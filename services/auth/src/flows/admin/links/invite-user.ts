// Invitations. How long their link is good (AUTH_MAILER_INVITE_EXP): core/verification-messages/link-mail.ts.
import type { Transaction } from 'kysely'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { type Asking, withHooks } from '../../../core/hooks/questions.ts'
import { insertAccount } from '../../../core/identities/insert-account.ts'
import { newAccount } from '../../../core/identities/new-account.ts'
import type { Pkce } from '../../../core/one-time-tokens/pkce.ts'
import { applyClaim } from '../../../core/users/address-claims.ts'
import { displace } from '../../../core/users/displace-registrant.ts'
import { isBanned } from '../../../core/users/is-banned.ts'
import { mergeUserMetadata } from '../../../core/users/metadata.store.ts'
import { requireModestMetadata } from '../../../core/users/metadata.ts'
import { withoutFacts } from '../../../core/users/proven-addresses.ts'
import { lockRegistrant } from '../../../core/users/registrants.store.ts'
import {
  findUserById,
  type LockedAccount,
  lockAndReadUser,
  setInvited,
  type User,
} from '../../../core/users/users.store.ts'
import { type MailContext, sendLinkMail } from '../../../core/verification-messages/link-mail.ts'
import { withMessagesCounted } from '../../../core/verification-messages/message-budget.ts'
import type { DB, Metadata } from '../../../db/tables.ts'
import { NIL_UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'

interface Account {
  email: string
  data: Metadata
  audience: string
}
type Invitation = Account & { context: MailContext; pkce: Pkce | undefined }

/** Invites an address that is new or not confirmed yet; the user chooses a password when following the link. */
export async function inviteUser(deps: Deps, log: AuditLog, admin: Actor, invitation: Invitation): Promise<User> {
  const { email, context, pkce } = invitation
  requireModestMetadata(invitation.data)
  const invite = (asking: Asking<Deps>) =>
    deps.db.transaction().execute(async (trx) => {
      const user = await lockInvited(asking, trx, log, admin, invitation)
      await sendLinkMail(deps, trx, { kind: 'invite', to: email, user, isClaim: true, pkce, ...context })
      await audit(deps, trx, log, { action: 'user_invited', actor: admin, target: user })
      return (await findUserById(trx, user.id)) as User
    })
  return withHooks(deps, log, invite, (work) =>
    withMessagesCounted(deps, [{ channel: 'email', value: email, share: 'admins' }], work),
  )
}

/** Locks the account of an invited address. Drops data of an earlier registration, extends that of an earlier admin. */
export async function lockInvited(
  deps: Asking<Deps>,
  trx: Transaction<DB>,
  log: AuditLog,
  admin: Actor,
  account: Account,
): Promise<User> {
  const data = withoutFacts(account.data)
  await displaceBanned(deps, trx, log, admin, account)
  const user = await lockUnproven(deps, trx, { ...account, data })
  const { id } = user
  if (user.email_vouched) await mergeUserMetadata(trx, id, data, deps.now())
  else if (!isProven(user)) await applyClaim(trx, user, { password_hash: null, data, by_admin: true }, deps.now())
  await setInvited(trx, id, deps.now())
  const invited = (await findUserById(trx, id)) as User
  requireModestMetadata(invited.user_metadata)
  return invited
}

/**
 * Takes the address from a banned account that never proved it: the ban is the registrant's, not the invited user's.
 */
async function displaceBanned(deps: Deps, trx: Transaction<DB>, log: AuditLog, admin: Actor, account: Account) {
  const address = { channel: 'email', value: account.email } as const
  const registrant = await lockRegistrant(trx, { address, audience: account.audience, exceptId: NIL_UUID })
  if (!registrant || !isBanned(registrant, deps.now())) return
  const action = await displace(trx, registrant, address, deps.now())
  await audit(deps, trx, log, { action, actor: admin, target: registrant })
}

/**
 * Returns the unconfirmed account of the address or a new one without a password. Throws email_exists for a proven
 * address.
 */
export async function lockUnproven(
  deps: Asking<Deps>,
  trx: Transaction<DB>,
  { email, data, audience }: Account,
): Promise<LockedAccount> {
  const account = newAccount(deps, { address: { channel: 'email', value: email }, data: {}, audience }, null)
  // Unlike a sign-up's, an admin's data gets no address added.
  const made = { ...account, user: { ...account.user, user_metadata: data } }
  const user = await lockAndReadUser(trx, await insertAccount(deps, trx, made))
  if (!user || user.email !== email || user.email_confirmed_at) throw apiError('email_exists')
  return user
}

export const isProven = (user: User) => user.email_confirmed_at !== null || user.phone_confirmed_at !== null
