// The shape of an external account that signs in. The user it joins: join-or-create-user.ts; fields of a provider:
// adapters/providers.
import type { Transaction } from 'kysely'
import type { CleanAccount } from '../../adapters/oauth/clean-account.ts'
import type { ExternalEmail } from '../../adapters/oauth/provider.ts'
import type { LinkingRule } from '../../config/external-providers.ts'
import type { Config } from '../../config.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { AuditDeps } from '../audit/audit.ts'
import type { NotifyDeps } from '../outbox/notify.ts'
import { mergeUserMetadata } from '../users/metadata.store.ts'
import { isModestMetadata } from '../users/metadata.ts'
import type { User } from '../users/users.store.ts'

export type ExternalDeps = AuditDeps &
  NotifyDeps & {
    config: Pick<Config, 'external' | 'jwt' | 'mail' | 'mfa' | 'sessions' | 'signup' | 'providers' | 'ownProviders'>
    now: () => Date
    newId: () => string
  }

export interface ExternalSignIn {
  /** `label`: name for people, where it has one. */
  provider: { name: string; label?: string; settings: { linking: LinkingRule } }
  account: CleanAccount
  audience: string
  acceptLanguage: string | undefined
}

export interface ExternalUser {
  user: User
  isNew: boolean
  /** Unverified address from the provider: a requested change, never the account's before its proof. */
  reportedEmail?: string | undefined
}

export type Found = Omit<ExternalUser, 'user'> & { userId: string }

/** Refusal of an unverified address; `isLinked`: the sign-in linked its account to a user without an address. */
export const unverifiedEmail = (
  { name, label: provider = name }: { name: string; label?: string },
  { isMailed = false, isLinked = false } = {},
) =>
  apiError(isLinked ? 'email_not_confirmed' : 'provider_email_needs_verification', {
    status: 422,
    message: isMailed
      ? `Unverified email with ${provider}. A confirmation email has been sent to your ${provider} email`
      : `Unverified email with ${provider}. Verify the email with ${provider} in order to sign in`,
  })

/** Data of an identity, merged into the user's metadata; both booleans are always present. */
export const identityData = ({ sub, claims }: CleanAccount, email: ExternalEmail | undefined): Metadata => ({
  ...claims,
  sub,
  provider_id: sub,
  ...(email ? { email: email.email } : {}),
  email_verified: email?.verified ?? false,
  phone_verified: false,
})

/** Data after a further sign-in. A partial account adds its claims, and its address replaces only an unverified one. */
export function renewedData(account: CleanAccount, email: ExternalEmail | undefined, stored: Metadata): Metadata {
  const data = identityData(account, email)
  if (!account.isPartial) return data
  const { email: address, email_verified } = stored
  return { ...stored, ...data, ...(email_verified === true && { email: address, email_verified }) }
}

/** Merges unless the metadata would be too large: the provider reports the same at the next sign-in. */
export async function mergeIfItFits(trx: Transaction<DB>, user: User, data: Metadata, now: Date): Promise<void> {
  if (isModestMetadata({ ...user.user_metadata, ...data })) await mergeUserMetadata(trx, user.id, data, now)
}
