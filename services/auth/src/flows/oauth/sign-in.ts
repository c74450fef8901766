// Signing in at a provider. A cookie of the callback's host binds an attempt to the browser that began it
// (../../http/attempt-cookie.ts). So an attempt begins with a navigation to that host. Other callers, a script or
// another host of ours, get an address there that begins it. One that links an account shows a page first
// (linking-page.ts), because a stranger may have sent it. Tests: here, ../../adapters/providers/.
//
// Attempt (flow_states) | becomes
// address to begin      | begun, when opened for the first time within its lifetime
// begun                 | used, by one callback of the same browser within its lifetime
// begun                 | expired
import { seal, unseal } from '@services/common/seal'
import type { ConfiguredProvider } from '../../adapters/oauth/configure-provider.ts'
import type { SignedIn, SignInSecrets } from '../../adapters/oauth/sign-in-client.ts'
import { type AuditLog, pendingAudit } from '../../core/audit/audit.ts'
import { signInExternally } from '../../core/identities/external-sign-in.ts'
import { SEALED } from '../../core/keys/sealed-columns.ts'
import { issueAuthCode, type ProviderTokens } from '../../core/one-time-tokens/auth-codes.store.ts'
import type { SessionBody } from '../../core/sessions/issue-tokens.ts'
import { type Client, startSession } from '../../core/sessions/start-session.ts'
import type { MailContext } from '../../core/verification-messages/link-mail.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { MAX_LOCATION } from '../../http/pages/send-to.ts'
import { type FlowState, insertFlowState, isBegun } from './flow-states.store.ts'

export interface SignInOrder extends Omit<FlowState, 'id' | 'sealed'> {
  scopes: string
  /** Parameters passed on to the provider. */
  parameters: Readonly<Record<string, string>>
}

interface Carried extends Omit<SignInOrder, 'inviteTokenHash'> {
  inviteTokenHash: string | null
  /** Id of the attempt, which makes the address work once. */
  id: string
  expiresAt: number
}

/** Stores the attempt; the caller sets its cookie. `countRequest` counts a request that the provider needs first. */
export async function beginSignIn(
  deps: Deps,
  { client, name }: ConfiguredProvider,
  order: SignInOrder,
  countRequest: () => Promise<void>,
  given?: string,
) {
  const id = given ?? deps.newId()
  if (given && (await isBegun(deps.db, id))) throw openedBefore()
  if (client.asksFirst) await countRequest()
  const { scopes, parameters } = order
  const { url, secrets } = await client.begin({ state: id, scopes, parameters, random: deps.random })
  const now = deps.now()
  const lifetimeSeconds = deps.config.external.stateLifetimeSeconds
  const state = { ...order, id, provider: name, sealed: deps.encryption.seal(SEALED.attempt, { id }, secrets) }
  const isNew = await insertFlowState(deps.db, state, now, new Date(now.getTime() + lifetimeSeconds * 1000))
  if (!isNew) throw openedBefore()
  const isPosted = new URL(url).searchParams.get('response_mode') === 'form_post'
  return { id, url, lifetimeSeconds, isSecure: isReachedByTls(deps, name), isPosted }
}

const openedBefore = () => apiError('bad_oauth_state', { message: 'This link has already been opened' })

/** Reports whether browsers reach /callback by https. */
export const isReachedByTls = ({ config, providers }: Pick<Deps, 'config' | 'providers'>, provider: string): boolean =>
  [config.server.externalUrl, providers.redirectUriOf(provider)].some((url) => url.startsWith('https:'))

/**
 * Makes a URL of the service that begins the attempt in the first browser that opens it. It is based on the redirect
 * URI, which reaches the service through any proxy. Throws validation_failed if the parameters are too long for a URL.
 */
export function addressToBegin(
  deps: Deps,
  { redirectUri }: ConfiguredProvider['settings'],
  order: SignInOrder,
  id = deps.newId(),
): string {
  const carried: Carried = {
    ...order,
    inviteTokenHash: order.inviteTokenHash?.toString('base64') ?? null,
    id,
    expiresAt: deps.now().getTime() + deps.config.external.stateLifetimeSeconds * 1000,
  }
  const address = new URL(redirectUri)
  address.searchParams.set('begin', seal(deps.attemptKey, carried))
  if (address.href.length > MAX_LOCATION) {
    throw apiError('validation_failed', {
      message: 'The parameters are too long: shorten redirect_to, scopes or the parameters for the provider',
    })
  }
  return address.href
}

/** Reads an address to begin. Throws bad_oauth_state for one that is incomplete or expired. */
export function readAddressToBegin({ attemptKey, now }: Deps, begin: string): { id: string; order: SignInOrder } {
  const { id, expiresAt, ...order } = unsealOrder(attemptKey, begin)
  if (expiresAt <= now().getTime()) throw apiError('bad_oauth_state', { message: 'This link has expired' })
  const { inviteTokenHash: hash } = order
  return { id, order: { ...order, inviteTokenHash: hash === null ? null : Buffer.from(hash, 'base64') } }
}

function unsealOrder(key: Deps['attemptKey'], begin: string): Carried {
  try {
    return unseal<Carried>(key, begin)
  } catch (cause) {
    throw apiError('bad_oauth_state', { message: 'This link is incomplete', cause })
  }
}

/** Opens the secrets of an attempt. Throws bad_oauth_state where no key opens them. */
export function openSecrets({ encryption }: Pick<Deps, 'encryption'>, state: FlowState): SignInSecrets {
  try {
    return encryption.open(SEALED.attempt, state)
  } catch (cause) {
    throw apiError('bad_oauth_state', { cause })
  }
}

type Finished = { session: SessionBody } | { authCode: string }

interface Arrival {
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
  const { account } = signedIn
  const shown = { provider, account, audience, context, linking, inviteTokenHash, attemptId: state.id }
  return signInExternally(deps, log, shown, async (asking, trx, user, identityId): Promise<Finished> => {
    if (!pkce) {
      const audited = pendingAudit(deps, log, { action: 'login', actor: user, traits: { provider: provider.name } })
      return { session: await startSession(asking, trx, user, 'oauth', client, audited, { identityId }) }
    }
    const { accessToken, refreshToken } = signedIn
    const providerTokens: ProviderTokens = { provider: provider.name, accessToken, refreshToken, identityId }
    const code = { userId: user.id, pkce, method: 'oauth', providerTokens, sessionId: linking?.sessionId ?? null }
    return { authCode: await issueAuthCode(deps, trx, code) }
  })
}
