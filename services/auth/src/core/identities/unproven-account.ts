// An account at a provider that reported an address without verifying it. Its first sign-in stores neither identity nor
// data. It registers the address, as a sign-up without a password does, whether or not an account has it already. The
// account at the provider travels sealed with the link of the mail. The link gives it to the address's account only in
// the browser of that sign-in: a stranger may have signed in. Tests: ../../../test/unproven-accounts.test.ts.
import type { KeyObject } from 'node:crypto'
import { seal, unseal } from '@services/common/seal'
import type { Transaction } from 'kysely'
import type { CleanAccount } from '../../adapters/oauth/clean-account.ts'
import type { DB } from '../../db/tables.ts'
import { type AuditDeps, type AuditLog, audit } from '../audit/audit.ts'
import { findUserById, type User } from '../users/users.store.ts'
import type { SealedAccount } from '../verification-messages/link-mail.ts'
import { identityData, mergeIfItFits } from './external-account.ts'
import { findIdentity, insertIdentity, tryLockExternalAccount } from './identities.store.ts'

interface UnprovenAccount {
  provider: string
  account: CleanAccount
  /** Attempt whose cookie the browser of the sign-in keeps. */
  attemptId: string
}

/** Seals an account at a provider; a sign-in without a browser, by an id_token, leaves nothing to link. */
export const sealAccount = (
  { storageKey }: { storageKey: KeyObject },
  { attemptId, ...unproven }: Omit<UnprovenAccount, 'attemptId'> & { attemptId: string | null },
): SealedAccount => ({
  provider: unproven.provider,
  sealed: attemptId === null ? undefined : seal(storageKey, { ...unproven, attemptId } satisfies UnprovenAccount),
})

/** Links the account that travelled with a link, now that its address is proven. `isBound`: the browser has the cookie. */
export async function linkProvenAccount(
  deps: AuditDeps & { now: () => Date; newId: () => string; storageKey: KeyObject },
  trx: Transaction<DB>,
  log: AuditLog,
  { userId, email, sealed }: { userId: string; email: string; sealed: string },
  isBound: (attemptId: string) => boolean,
): Promise<void> {
  const unproven = open(deps.storageKey, sealed)
  if (!unproven || !isBound(unproven.attemptId)) return
  const { provider, account } = unproven
  // Another sign-in with the account is under way, and decides whose it is.
  if (!(await tryLockExternalAccount(trx, provider, account.sub))) return
  if (await findIdentity(trx, provider, account.sub)) return
  const now = deps.now()
  const data = identityData(account, { email, verified: true, primary: true })
  await insertIdentity(trx, { id: deps.newId(), userId, provider, providerId: account.sub, data, now })
  const user = (await findUserById(trx, userId)) as User
  await mergeIfItFits(trx, user, data, now)
  await audit(deps, trx, log, { action: 'identity_linked', actor: user, traits: { provider } })
}

/** undefined: sealed under another AUTH_ENCRYPTION_KEY. The address is proven all the same. */
function open(key: KeyObject, sealed: string): UnprovenAccount | undefined {
  try {
    return unseal<UnprovenAccount>(key, sealed)
  } catch {
    return undefined
  }
}
