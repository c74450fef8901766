// What becomes of an account shown at a provider: a session, a code for one, or a link to the account of who asked. The one
// rule: the attempt was used up before (flow-states.store.ts), so that an answer of the provider is worth one sign-in.
import { seal } from '@services/common/sealed'
import type { Transaction } from 'kysely'
import { type AuditLog, audit } from '../audit/audit.ts'
import { insertAuthCode } from '../auth-codes/auth-codes.store.ts'
import type { ProviderTokens } from '../auth-codes/provider-tokens.ts'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { acceptInvitation, linkIdentity } from '../identities/link-identity.ts'
import { findOrCreateExternalUser, unverifiedEmail } from '../identities/sign-in-externally.ts'
import { countSignUp } from '../metrics.ts'
import { sendConfirmation } from '../one-time-messages/confirmation.ts'
import type { MailContext } from '../one-time-messages/link-mail.ts'
import { withMessagesCounted } from '../one-time-messages/message-budget.ts'
import { withinGaps } from '../one-time-messages/send-gap.ts'
import { hashLinkToken } from '../one-time-tokens/one-time-token.ts'
import type { ConfiguredProvider } from '../providers/index.ts'
import type { SignedIn } from '../providers/sign-in-client.ts'
import type { SessionBody } from '../sessions/session-shape.ts'
import { type Client, startSession } from '../sessions/start-session.ts'
import { lockAndReadUser, type User } from '../users/users.store.ts'
import type { FlowState } from './flow-states.store.ts'

export type Finished = { session: SessionBody } | { authCode: string }

export interface Arrival {
  state: FlowState
  provider: ConfiguredProvider
  signedIn: SignedIn
  client: Client
  context: MailContext
}

export async function finishSignIn(deps: Deps, log: AuditLog, arrival: Arrival): Promise<Finished> {
  const { state, provider, signedIn } = arrival
  const { account } = signedIn
  if (account.emails.length === 0 && !provider.settings.emailOptional) {
    throw apiError('unexpected_failure', { status: 502, message: 'Error getting user email from external provider' })
  }
  const { user, isNew, finished } = await deps.db.transaction().execute(async (trx) => {
    const found = await findUser(deps, trx, log, arrival)
    return { ...found, finished: found.awaitsProof ? undefined : await admit(deps, trx, log, found.user, arrival) }
  })
  if (isNew) countSignUp(provider.name)
  if (finished) return finished
  throw unverifiedEmail(provider.name, {
    isMailed: await isConfirmationSent(deps, log, user, arrival.context),
    isLinked: state.linkingUserId !== null,
  })
}

/** `awaitsProof`: the provider told an address and had not verified it. The account is kept, its owner gets a mail first. */
async function findUser(
  deps: Deps,
  trx: Transaction<DB>,
  log: AuditLog,
  { state, provider, signedIn: { account }, context }: Arrival,
): Promise<{ user: User; isNew: boolean; awaitsProof: boolean }> {
  const { acceptLanguage } = context
  const signIn = { provider, account, audience: state.audience, acceptLanguage }
  if (state.linkingUserId) {
    return { ...(await linkIdentity(deps, trx, log, signIn, state.linkingUserId)), isNew: false }
  }
  if (state.inviteTokenHash) {
    const user = await acceptInvitation(deps, trx, log, signIn, state.inviteTokenHash)
    return { user, isNew: false, awaitsProof: false }
  }
  const { user, isNew } = await findOrCreateExternalUser(deps, trx, log, signIn)
  const isUnproven = account.emails.length > 0 && user.email !== null && !user.email_confirmed_at
  return { user, isNew, awaitsProof: isUnproven && !deps.config.external.allowUnverifiedEmail }
}

async function admit(deps: Deps, trx: Transaction<DB>, log: AuditLog, user: User, arrival: Arrival): Promise<Finished> {
  const { state, provider, signedIn, client } = arrival
  if (!state.pkce) {
    const session = await startSession(deps, trx, user, 'oauth', client)
    await audit(deps, trx, log, { action: 'login', actor: user, traits: { provider: provider.name } })
    return { session }
  }
  const { accessToken, refreshToken } = signedIn
  const tokens: ProviderTokens = { provider: provider.name, accessToken, refreshToken }
  const now = deps.now()
  const authCode = deps.random(32).toString('base64url')
  await insertAuthCode(trx, {
    codeHash: hashLinkToken(authCode),
    userId: user.id,
    pkce: state.pkce,
    method: 'oauth',
    providerTokens: seal(deps.storageKey, tokens),
    expiresAt: new Date(now.getTime() + deps.config.signup.pkceCodeLifetimeSeconds * 1000),
    now,
  })
  return { authCode }
}

/** After the account was made, because limits are not counted inside a transaction. A refusal means that none is sent. */
async function isConfirmationSent(deps: Deps, log: AuditLog, user: User, context: MailContext): Promise<boolean> {
  const address = { channel: 'email', value: user.email as string } as const
  const send = () =>
    deps.db.transaction().execute(async (trx) => {
      const holder = await lockAndReadUser(trx, user.id)
      if (!holder) return
      await sendConfirmation(deps, trx, holder, { address, context })
      await audit(deps, trx, log, {
        action: 'user_confirmation_requested',
        actor: holder,
        traits: { provider: 'email' },
      })
    })
  try {
    await withinGaps(deps, [{ kind: 'confirmation', key: address.value }], () =>
      withMessagesCounted(deps, [address], send),
    )
    return true
  } catch {
    return false
  }
}
