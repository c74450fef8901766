import { seal } from '@services/common/sealed'
import type { Pkce } from '../auth-codes/pkce.ts'
import type { Deps } from '../deps.ts'
import type { Linking } from '../identities/link-identity.ts'
import { insertFlowState } from './flow-states.store.ts'

export interface SignInOrder {
  /** As the application named it. */
  provider: string
  scopes: string
  /** For the provider: what is not ours of the query. */
  parameters: Readonly<Record<string, string>>
  redirectTo: string
  audience: string
  pkce: Pkce | undefined
  inviteTokenHash: Buffer | null
  linking: Linking | null
}

/** Notes an attempt to sign in at a provider. Returns where to send the browser. */
export async function beginSignIn(deps: Deps, order: SignInOrder): Promise<string> {
  const provider = deps.providers.find(order.provider)
  const id = deps.newId()
  const { scopes, parameters } = order
  const { url, secrets } = await provider.client.begin({ state: id, scopes, parameters, random: deps.random })
  const now = deps.now()
  const expiresAt = new Date(now.getTime() + deps.config.external.stateLifetimeSeconds * 1000)
  const state = { ...order, id, provider: provider.name, sealed: seal(deps.storageKey, secrets) }
  await insertFlowState(deps.db, state, now, expiresAt)
  return url
}
