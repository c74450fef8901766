import type { Transaction } from 'kysely'
import { primaryEmail } from '../../adapters/oauth/clean-account.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { AuditLog } from '../audit/audit.ts'
import { applyEmailChange, confirmAddress, isEmailTaken } from '../users/addresses.store.ts'
import { changeUser } from '../users/change-user.store.ts'
import { displaceRegistrant } from '../users/displace-registrant.ts'
import { isPending } from '../users/proven-addresses.ts'
import { withdrawEmail } from '../users/registrants.store.ts'
import { lockAndReadUser, type User } from '../users/users.store.ts'
import { type ExternalDeps, type ExternalSignIn, type Found, mergeIfItFits, renewedData } from './external-account.ts'
import { refreshIdentity } from './identities.store.ts'
import { refuseVanishedAccount } from './new-account.ts'

export async function signInAgain(
  deps: ExternalDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  { account, audience }: ExternalSignIn,
  identity: { id: string; user_id: string },
): Promise<Found> {
  const user = (await lockAndReadUser(trx, identity.user_id)) ?? refuseVanishedAccount()
  // Removed while the lock was awaited, by a proof of the address or an unlinking.
  const stored = user.identities.find(({ id }) => id === identity.id) ?? refuseVanishedAccount()
  // An account at a provider has one user in all audiences; a token of another audience must not be issued.
  if (user.aud !== audience) {
    throw apiError('unexpected_audience', {
      message: 'This account at the provider belongs to a user of another audience',
    })
  }
  const email = primaryEmail(account)
  const data = renewedData(account, email, stored.identity_data)
  await refreshIdentity(trx, identity.id, data, deps.now())
  await mergeIfItFits(trx, user, data, deps.now())
  const found = { userId: user.id, isNew: false }
  if (email?.verified) await takeVerified(deps, trx, log, user, email.email)
  // Created while such sign-ins were refused.
  else if (isPending(user) && deps.config.external.allowUnverifiedEmail) await withdrawEmail(deps, trx, user.id)
  if (!user.is_anonymous) return found
  // An anonymous user linked it, and the reported address still awaits its proof.
  const reportedEmail = email && !email.verified ? email.email : undefined
  if (!reportedEmail || deps.config.external.allowUnverifiedEmail) {
    await changeUser(trx, user.id, { is_anonymous: false }, deps.now())
  }
  return { ...found, reportedEmail }
}

/** Confirms the account's address. An account without a confirmed address takes this one, if it is free. */
async function takeVerified(deps: ExternalDeps, trx: Transaction<DB>, log: AuditLog, user: User, email: string) {
  const now = deps.now()
  if (user.email === email) return confirmAddress(trx, user.id, 'email', now)
  if (user.email_confirmed_at || (user.email && !(await withdrawEmail(deps, trx, user.id)))) return
  await displaceRegistrant(deps, trx, log, user, { channel: 'email', value: email })
  if (!(await isEmailTaken(trx, email, user.aud, user.id))) await applyEmailChange(trx, user.id, email, 'proven', now)
}
