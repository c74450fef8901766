// An account at a provider that reported an address without verifying it. Its first sign-in stores neither identity nor
// data. It registers the address, as a sign-up without a password does, whether or not an account has it already. The
// account at the provider travels sealed with the link of the mail. The link gives it to the address's account only in
// the browser of that sign-in: a stranger may have signed in. Tests: ../../../test/unproven-accounts.test.ts.
import type { Transaction } from 'kysely'
import type { CleanAccount } from '../../adapters/oauth/clean-account.ts'
import type { DB } from '../../db/tables.ts'
import { type AuditDeps, type AuditLog, audit } from '../audit/audit.ts'
import type { Encryption } from '../keys/encryption.ts'
import { SEALED } from '../keys/sealed-columns.ts'
import type { TakenToken } from '../one-time-tokens/one-time-tokens.store.ts'
import { findUserById, type User } from '../users/users.store.ts'
import type { AccountToLink } from '../verification-messages/link-mail.ts'
import { identityData, mergeIfItFits } from './external-account.ts'
import { findIdentity, insertIdentity, tryLockExternalAccount } from './identities.store.ts'

interface UnprovenAccount {
  provider: string
  account: CleanAccount
  /** Attempt whose cookie the browser of the sign-in keeps. */
  attemptId: string
}

/** Makes what travels with a mail; a sign-in without a browser, by an id_token, leaves nothing to link. */
export const accountToLink = ({
  attemptId,
  ...unproven
}: Omit<UnprovenAccount, 'attemptId'> & { attemptId: string | null }): AccountToLink => ({
  provider: unproven.provider,
  account: attemptId === null ? undefined : ({ ...unproven, attemptId } satisfies UnprovenAccount),
})

type StoredAccount = Pick<TakenToken, 'user_id' | 'relates_to' | 'token_hash' | 'external_account'>

/**
 * Links the account that travelled with a link, now that its address is proven. `isBound`: the browser has the cookie.
 */
export async function linkProvenAccount(
  deps: AuditDeps & { now: () => Date; newId: () => string; encryption: Encryption },
  trx: Transaction<DB>,
  log: AuditLog,
  token: StoredAccount,
  isBound: (attemptId: string) => boolean,
): Promise<void> {
  const unproven = open(deps.encryption, token)
  if (!unproven || !isBound(unproven.attemptId)) return
  const { provider, account } = unproven
  const { user_id: userId, relates_to: email } = token
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

/** undefined: its key was replaced. The address is proven all the same. */
function open(encryption: Encryption, token: StoredAccount): UnprovenAccount | undefined {
  try {
    return encryption.open(SEALED.unprovenAccount, token)
  } catch {
    return undefined
  }
}
