import { seal } from '@services/common/sealed'
import type { ConfiguredProvider } from '../../adapters/providers/configure-provider.ts'
import type { SignedIn } from '../../adapters/providers/sign-in-client.ts'
import { type AuditLog, pendingAudit } from '../../core/audit/audit.ts'
import { signInExternally } from '../../core/identities/external-sign-in.ts'
import { issueAuthCode, type ProviderTokens } from '../../core/one-time-tokens/auth-codes.store.ts'
import type { SessionBody } from '../../core/sessions/answer-session.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import type { MailContext } from '../../core/verification-messages/link-mail.ts'
import type { Deps } from '../../deps.ts'
import type { FlowState } from './flow-states.store.ts'

export type Finished = { session: SessionBody } | { authCode: string }

export interface Arrival {
  state: FlowState
  provider: ConfiguredProvider
  signedIn: SignedIn
  client: Client
  context: MailContext
}

/** Signs in with the answer of a provider. The attempt is used up already (flow-states.store.ts). */
export function finishSignIn(deps: Deps, log: AuditLog, arrival: Arrival): Promise<Finished> {
  const { state, provider, signedIn, client, context } = arrival
  const { audience, linking, inviteTokenHash, pkce } = state
  const shown = { provider, account: signedIn.account, audience, context, linking, inviteTokenHash }
  return signInExternally<Finished>(deps, log, shown, async (trx, user, identityId) => {
    if (!pkce) {
      const audited = pendingAudit(deps, log, { action: 'login', actor: user, traits: { provider: provider.name } })
      return { session: await startSession(deps, trx, user, 'oauth', client, audited, { identityId }) }
    }
    const { accessToken, refreshToken } = signedIn
    const tokens: ProviderTokens = { provider: provider.name, accessToken, refreshToken, identityId }
    const providerTokens = seal(deps.storageKey, tokens)
    const code = { userId: user.id, pkce, method: 'oauth', providerTokens }
    return { authCode: await issueAuthCode(deps, trx, code) }
  })
}
