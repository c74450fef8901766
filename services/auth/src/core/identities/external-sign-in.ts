import type { Kysely, Transaction } from 'kysely'
import { primaryEmail } from '../../adapters/oauth/clean-account.ts'
import type { LinkingRule } from '../../config/external-providers.ts'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countSignUp } from '../../metrics.ts'
import { type AuditLog, audit } from '../audit/audit.ts'
import { type Asking, withHooks } from '../hooks/questions.ts'
import { claimOf, recordClaim } from '../users/address-claims.ts'
import { isBanned } from '../users/is-banned.ts'
import { isPending } from '../users/proven-addresses.ts'
import { lockAndReadUser, type User } from '../users/users.store.ts'
import { beginEmailChange } from '../verification-messages/address-change.ts'
import { sendConfirmation } from '../verification-messages/confirmation.ts'
import type { LinkMailDeps, MailContext } from '../verification-messages/link-mail.ts'
import type { BudgetDeps } from '../verification-messages/message-budget.ts'
import type { AdmitDeps } from './admit-user.ts'
import { type ExternalDeps, type ExternalSignIn, type ExternalUser, unverifiedEmail } from './external-account.ts'
import { lockExternalAccount } from './identities.store.ts'
import { findOrCreateExternalUser } from './join-or-create-user.ts'
import { acceptInvitation, type Linking, linkIdentity } from './link-identity.ts'
import { newAccount } from './new-account.ts'
import { registerAddress } from './register-address.ts'
import { isChangeSent, isSent, isSentIn, type RequestedEmail } from './request-email.ts'
import { accountToLink } from './unproven-account.ts'

type Deps = ExternalDeps & LinkMailDeps & BudgetDeps & AdmitDeps & { db: Kysely<DB>; config: Config }

export interface ShownAccount extends Omit<ExternalSignIn, 'provider' | 'acceptLanguage'> {
  provider: { name: string; label?: string; settings: { linking: LinkingRule; emailOptional: boolean } }
  /** Context of the mail that confirms an address. */
  context: MailContext
  /** null: a sign-in. */
  linking: Linking | null
  inviteTokenHash: Buffer | null
  /** Attempt of the browser; null: an id_token, which no browser brought. */
  attemptId: string | null
}

/**
 * Signs in, links or invites with an account at a provider; `admit` starts the session in the same transaction. Throws
 * provider_email_needs_verification or email_not_confirmed for an unverified address, whose owner gets a mail.
 */
export async function signInExternally<Own extends Deps, Admitted>(
  deps: Own,
  log: AuditLog,
  shown: ShownAccount,
  admit: (asking: Asking<Own>, trx: Transaction<DB>, user: User, identityId: string | undefined) => Promise<Admitted>,
): Promise<Admitted> {
  const { provider, account, context } = shown
  if (account.emails.length === 0 && !provider.settings.emailOptional) {
    throw withoutEmail(account)
  }
  const sessionId = shown.linking?.sessionId ?? null
  const outcome = await withHooks(deps, log, (asking) =>
    deps.db.transaction().execute(async (trx) => {
      const found = await findUser(asking, trx, log, shown)
      if (found === 'unproven') return found
      if (found.reportedEmail) await beginEmailChange(deps, trx, found.user, found.reportedEmail, sessionId)
      if (isBanned(found.user, deps.now())) throw apiError('user_banned')
      return {
        ...found,
        admitted: found.awaitsProof
          ? undefined
          : { value: await admit(asking, trx, found.user, identityOf(found.user, shown)) },
      }
    }),
  )
  if (outcome === 'unproven') {
    throw unverifiedEmail(provider, { isMailed: await isRegistrationSent(deps, log, shown) })
  }
  const { user, isNew, reportedEmail, admitted } = outcome
  if (isNew) countSignUp(provider.name)
  const mail = { userId: user.id, email: reportedEmail ?? (user.email as string), context, sessionId }
  const isMailed = reportedEmail
    ? await isChangeSent(deps, mail)
    : !admitted && (await isConfirmationSent(deps, log, mail))
  if (admitted) return admitted.value
  throw unverifiedEmail(provider, { isMailed, isLinked: shown.linking !== null })
}

/** The refusal of an account without a usable address; only a missing one is a matter of EMAIL_OPTIONAL. */
const withoutEmail = ({ hasOnlyMalformedEmails }: ShownAccount['account']) =>
  apiError('unexpected_failure', {
    status: 502,
    message: hasOnlyMalformedEmails
      ? 'External provider reported an invalid email address'
      : 'Error getting user email from external provider',
  })

/** Returns the identity of the sign-in; undefined where the user was admitted without linking the account. */
const identityOf = (user: User, { provider, account }: ShownAccount): string | undefined =>
  user.identities.find(({ provider: name, provider_id: sub }) => name === provider.name && sub === account.sub)?.id

async function findUser(
  deps: Asking<Deps>,
  trx: Transaction<DB>,
  log: AuditLog,
  shown: ShownAccount,
): Promise<(ExternalUser & { awaitsProof: boolean }) | 'unproven'> {
  const signIn = { ...shown, acceptLanguage: shown.context.acceptLanguage }
  const isRefused = (reported: string | undefined) =>
    reported !== undefined && !deps.config.external.allowUnverifiedEmail
  // Locked before any user: concurrent linking and signing in with one account would deadlock.
  await lockExternalAccount(trx, shown.provider.name, shown.account.sub)
  if (shown.linking) {
    const linked = await linkIdentity(deps, trx, log, signIn, shown.linking)
    return { ...linked, isNew: false, awaitsProof: isRefused(linked.reportedEmail) }
  }
  if (shown.inviteTokenHash) {
    const user = await acceptInvitation(deps, trx, log, signIn, shown.inviteTokenHash)
    return { user, isNew: false, awaitsProof: false }
  }
  const found = await findOrCreateExternalUser(deps, trx, log, signIn)
  if (found === 'unproven') return found
  // A pending account accepts no sign-in.
  return { ...found, awaitsProof: isPending(found.user) || isRefused(found.reportedEmail) }
}

/**
 * Registers the address of an unknown account at a provider and sends its link. The owner of an account that has the
 * address learns of it instead: with all steps alike, no answer reveals the account.
 */
async function isRegistrationSent(deps: Deps, log: AuditLog, shown: ShownAccount): Promise<boolean> {
  const { provider, account: external, audience, context, attemptId } = shown
  const address = { channel: 'email', value: primaryEmail(external)?.email ?? '' } as const
  const account = newAccount(deps, { address, data: {}, audience }, null)
  const claim = claimOf(deps, { address, passwordHash: null, data: {} })
  const toLink = accountToLink({ provider: provider.name, account: external, attemptId })
  // Stored even if limits refuse the mail.
  await deps.db.transaction().execute((trx) => recordClaim(trx, claim))
  let isNew = false
  const register = (asking: Asking<Deps>) =>
    deps.db.transaction().execute(async (trx) => {
      isNew = await registerAddress(asking, trx, log, { account, claim, order: { context, external: toLink } })
    })
  const isMailed = await isSent(deps, address.value, (counted) => withHooks(deps, log, register, counted))
  if (isNew) countSignUp(provider.name)
  return isMailed
}

/** Sends the link that confirms a pending account with an identity: an admin may have withdrawn the proof. */
const isConfirmationSent = (deps: Deps, log: AuditLog, { userId, email, context }: RequestedEmail) =>
  isSentIn(deps, email, async (trx) => {
    const account = await lockAndReadUser(trx, userId)
    if (!account) return
    const address = { channel: 'email', value: email } as const
    const { isPending } = await sendConfirmation(deps, trx, account, { address, context })
    if (!isPending) return
    const traits = { provider: 'email' }
    await audit(deps, trx, log, { action: 'user_confirmation_requested', actor: account, traits })
  })
