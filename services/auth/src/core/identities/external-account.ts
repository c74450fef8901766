// What an account at a provider brings: the sign-in it was shown in, and what an identity and its user's metadata hold of it.
import type { Transaction } from 'kysely'
import type { CleanAccount } from '../../adapters/providers/clean-account.ts'
import type { ExternalEmail } from '../../adapters/providers/provider.ts'
import type { Config } from '../../config.ts'
import type { DB, Metadata } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { AuditDeps } from '../audit/audit.ts'
import type { NotifyDeps } from '../outbox/notify.ts'
import { mergeUserMetadata } from '../users/metadata.store.ts'
import { isModestMetadata } from '../users/metadata.ts'
import type { User } from '../users/users.store.ts'

export type ExternalSignInDeps = AuditDeps &
  NotifyDeps & {
    config: Pick<Config, 'external' | 'jwt' | 'mail' | 'mfa' | 'sessions' | 'signup'>
    now: () => Date
    newId: () => string
  }

export interface ExternalSignIn {
  provider: { name: string; settings: { linking: 'verified' | 'never' } }
  account: CleanAccount
  audience: string
  acceptLanguage: string | undefined
}

export interface ExternalUser {
  user: User
  isNew: boolean
  /** Somebody else, who has the address: it is not verified, so there is no account for who showed it. */
  isAnother: boolean
  /** Address that the provider told and has not verified: a wanted one, and never the account's before its proof. */
  toldEmail?: string | undefined
}

export type Found = Omit<ExternalUser, 'user'> & { userId: string }

/** The refusal of an address nobody has verified; `isLinked`: its account was linked to one that had none. */
export const unverifiedEmail = (provider: string, { isMailed = false, isLinked = false } = {}) =>
  apiError(isLinked ? 'email_not_confirmed' : 'provider_email_needs_verification', {
    status: 422,
    message: isMailed
      ? `Unverified email with ${provider}. A confirmation email has been sent to your ${provider} email`
      : `Unverified email with ${provider}. Verify the email with ${provider} in order to sign in`,
  })

/** What an identity holds, and what the user's metadata gets of it; the two booleans are always there. */
export const identityData = ({ sub, claims }: CleanAccount, email: ExternalEmail | undefined): Metadata => ({
  ...claims,
  sub,
  provider_id: sub,
  ...(email ? { email: email.email } : {}),
  email_verified: email?.verified ?? false,
  phone_verified: false,
})

/** A user whose metadata is full keeps it as it is: the provider tells the same next time. */
export async function mergeIfItFits(
  deps: ExternalSignInDeps,
  trx: Transaction<DB>,
  user: User,
  data: Metadata,
): Promise<void> {
  if (isModestMetadata({ ...user.user_metadata, ...data })) await mergeUserMetadata(trx, user.id, data, deps.now())
}
