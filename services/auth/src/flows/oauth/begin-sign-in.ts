// Signing in at a provider. The one rule: an attempt is bound to the browser that began it by a cookie of the callback's host
// (../../http/attempt-cookie.ts), so it begins with a navigation to that host. Other callers, a script or another host of ours,
// get an address there that begins it; one that links an account shows a page first (linking-page.ts), because a stranger may
// have sent it. Tests: here, ../../adapters/providers/. Read next: callback.routes.ts.
//
// Attempt (flow_states) | becomes
// address to begin      | begun, when opened for the first time within its lifetime
// begun                 | used, by one callback of the same browser within its lifetime
// begun                 | expired
import { seal, unseal } from '@services/common/sealed'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
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

interface Beginning {
  id?: string
  /** Counts a request of ours to a provider that needs one before the browser is sent. */
  countRequest: () => Promise<void>
}

/** Stores the attempt. The caller sets its cookie. */
export async function beginSignIn(deps: Deps, order: SignInOrder, { id: given, countRequest }: Beginning) {
  const { client, name } = deps.providers.find(order.provider)
  const id = given ?? deps.newId()
  if (given && (await isBegun(deps.db, id))) throw openedBefore()
  if (client.asksFirst) await countRequest()
  const { scopes, parameters } = order
  const { url, secrets } = await client.begin({ state: id, scopes, parameters, random: deps.random })
  const now = deps.now()
  const lifetimeSeconds = deps.config.external.stateLifetimeSeconds
  const state = { ...order, id, provider: name, sealed: seal(deps.storageKey, secrets) }
  const isNew = await insertFlowState(deps.db, state, now, new Date(now.getTime() + lifetimeSeconds * 1000))
  if (!isNew) throw openedBefore()
  const isPosted = new URL(url).searchParams.get('response_mode') === 'form_post'
  return { id, url, lifetimeSeconds, isSecure: isReachedByTls(deps, name), isPosted }
}

const openedBefore = () => apiError('bad_oauth_state', { message: 'This link has already been opened' })

/** Reports whether browsers reach /callback by https. */
export const isReachedByTls = ({ config, providers }: Pick<Deps, 'config' | 'providers'>, provider: string): boolean =>
  [config.server.externalUrl, providers.find(provider).settings.redirectUri].some((url) => url.startsWith('https:'))

/** Longest address to begin: by default nginx accepts 4 KiB of response headers. */
const MAX_ADDRESS_LENGTH = 3 * 1024

/**
 * Makes a URL of the service that begins the attempt in the first browser that opens it. It is based on the redirect
 * URI, which reaches the service through any proxy. Throws validation_failed if the parameters are too long for a URL.
 */
export function addressToBegin(deps: Deps, order: SignInOrder): string {
  const { redirectUri } = deps.providers.find(order.provider).settings
  const carried: Carried = {
    ...order,
    inviteTokenHash: order.inviteTokenHash?.toString('base64') ?? null,
    id: deps.newId(),
    expiresAt: deps.now().getTime() + deps.config.external.stateLifetimeSeconds * 1000,
  }
  const address = new URL(redirectUri)
  address.searchParams.set('begin', seal(deps.attemptKey, carried))
  if (address.href.length > MAX_ADDRESS_LENGTH) {
    throw apiError('validation_failed', {
      message: 'The parameters are too long: shorten redirect_to, scopes or the parameters for the provider',
    })
  }
  return address.href
}

export interface AddressToBegin {
  id: string
  order: SignInOrder
  begin: string
}

/** Reads an address to begin. Throws bad_oauth_state for one that is incomplete or expired. */
export function readAddressToBegin({ attemptKey, now }: Deps, begin: string): AddressToBegin {
  const { id, expiresAt, ...order } = unsealOrder(attemptKey, begin)
  if (expiresAt <= now().getTime()) throw apiError('bad_oauth_state', { message: 'This link has expired' })
  const { inviteTokenHash: hash } = order
  return { id, begin, order: { ...order, inviteTokenHash: hash === null ? null : Buffer.from(hash, 'base64') } }
}

function unsealOrder(key: Deps['attemptKey'], begin: string): Carried {
  try {
    return unseal<Carried>(key, begin)
  } catch (cause) {
    throw apiError('bad_oauth_state', { message: 'This link is incomplete', cause })
  }
}
