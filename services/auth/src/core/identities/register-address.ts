import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { type AuditDeps, type AuditLog, audit } from '../audit/audit.ts'
import type { Asking } from '../hooks/questions.ts'
import type { AddressClaim } from '../users/address-claims.store.ts'
import { recordClaim } from '../users/address-claims.ts'
import { lockAndReadUser } from '../users/users.store.ts'
import { type ConfirmationOrder, sendConfirmation } from '../verification-messages/confirmation.ts'
import type { LinkMailDeps } from '../verification-messages/link-mail.ts'
import type { AdmitDeps } from './admit-user.ts'
import { insertAccount } from './insert-account.ts'
import { type Account, refuseVanishedAccount, withClaim } from './new-account.ts'

type Deps = Asking<AuditDeps & LinkMailDeps & AdmitDeps & { db: Kysely<DB>; config: Config }>

/**
 * Registers an address that waits for its proof and sends its owner the link or code. An account that has the address
 * takes the same work. Returns whether the account is new.
 */
export async function registerAddress(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  { account, claim, order }: { account: Account; claim: AddressClaim; order: Omit<ConfirmationOrder, 'address'> },
): Promise<boolean> {
  const { address, user } = account
  const claimed = withClaim(account, await recordClaim(trx, claim))
  const storedId = await insertAccount(deps, trx, claimed, { hidesKnown: true })
  const stored = (await lockAndReadUser(trx, storedId)) ?? refuseVanishedAccount()
  const { isPending } = await sendConfirmation(deps, trx, stored, { ...order, address, isClaim: true })
  const action = isPending ? 'user_confirmation_requested' : 'user_repeated_signup'
  await audit(deps, trx, log, { action, actor: stored, traits: { provider: address.channel } })
  return storedId === user.id
}
