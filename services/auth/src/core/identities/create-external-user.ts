import type { Transaction } from 'kysely'
import { primaryEmail } from '../../adapters/providers/clean-account.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { findUserIdsByEmails } from '../users/addresses.store.ts'
import { blankUser } from '../users/blank-user.ts'
import { insertUser } from '../users/users.store.ts'
import { type ExternalSignIn, type ExternalSignInDeps, type Found, identityData } from './external-account.ts'
import { insertIdentity } from './identities.store.ts'

/** Makes a user of an account at a provider. Undefined when somebody else had the address first. */
export async function createExternalUser(
  deps: ExternalSignInDeps,
  trx: Transaction<DB>,
  { provider, account, audience }: ExternalSignIn,
): Promise<Found | undefined> {
  const { config } = deps
  if (config.signup.disabled) throw apiError('signup_disabled')
  const now = deps.now()
  const email = primaryEmail(account)
  const [holder] = email ? await findUserIdsByEmails(trx, [email.email], audience) : []
  if (holder && email?.verified) return undefined
  // It is only told to be theirs.
  if (holder && !config.external.allowUnverifiedEmail) return { userId: holder, isNew: false, isAnother: true }
  // The account is let in without it; the answer is the same whether the address is taken.
  const toldEmail = config.external.allowUnverifiedEmail && !email?.verified ? email?.email : undefined
  const ownEmail = toldEmail || holder ? undefined : email
  const isAssumed = ownEmail !== undefined && !ownEmail.verified && config.mail.autoconfirm
  const data = identityData(account, email)
  const id = deps.newId()
  const { identities: _none, confirmed_at: _generated, ...row } = blankUser(id, audience, config.jwt.defaultRole, now)
  const isInserted = await insertUser(trx, {
    ...row,
    email: ownEmail?.email ?? null,
    email_confirmed_at: ownEmail?.verified || isAssumed ? now : null,
    email_assumed: isAssumed,
    email_change: toldEmail ?? null,
    email_change_sent_at: toldEmail ? now : null,
    app_metadata: { provider: provider.name, providers: [provider.name] },
    user_metadata: data,
  })
  if (!isInserted) return undefined
  await insertIdentity(trx, {
    id: deps.newId(),
    userId: id,
    provider: provider.name,
    providerId: account.sub,
    data,
    now,
  })
  return { userId: id, isNew: true, isAnother: false, toldEmail }
}
