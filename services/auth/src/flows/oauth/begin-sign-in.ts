// Beginning to sign in at a provider. The one rule: an attempt begins with a navigation to the host the provider sends the
// browser back to, since only there can the browser be given the cookie the attempt is bound to (http/attempt-cookie.ts). What asks
// from elsewhere, a page's script or another host of ours, gets an address of that host that begins it; where it links, after a page
// (linking-page.ts), since the address may have been sent by a stranger.
import { seal, unseal } from '@services/common/sealed'
import type { Linking } from '../../core/identities/link-identity.ts'
import type { Pkce } from '../../core/one-time-tokens/pkce.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { insertFlowState, isBegun } from './flow-states.store.ts'

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

export interface BegunSignIn {
  /** The `state` the provider is given. */
  id: string
  /** Where to send the browser. */
  url: string
  lifetimeSeconds: number
  /** Whether browsers come back by https. */
  isSecure: boolean
  /** Whether the provider's page posts its answer. */
  isPosted: boolean
}

/** An order as the browser carries it to where it is begun. */
interface Carried extends Omit<SignInOrder, 'inviteTokenHash'> {
  inviteTokenHash: string | null
  /** The attempt it becomes, of which there is one. */
  id: string
  expiresAt: number
}

interface Beginning {
  /** Of an address to begin, which is good once. */
  id?: string
  /** Counts a request of ours to the provider, where it has to be asked first. */
  countRequest: () => Promise<void>
}

/** Notes the attempt. The browser is to be given its cookie. */
export async function beginSignIn(
  deps: Deps,
  order: SignInOrder,
  { id: givenId, countRequest }: Beginning,
): Promise<BegunSignIn> {
  const { client, name } = deps.providers.find(order.provider)
  const id = givenId ?? deps.newId()
  if (givenId && (await isBegun(deps.db, id))) throw openedBefore()
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

const openedBefore = () => apiError('bad_oauth_state', { message: 'This address has been opened before' })

/** Reports whether browsers come to /callback by https. */
export const isReachedByTls = ({ config, providers }: Pick<Deps, 'config' | 'providers'>, provider: string): boolean =>
  [config.server.externalUrl, providers.find(provider).settings.redirectUri].some((url) => url.startsWith('https:'))

/** Longest address to begin: nginx takes 4 KiB of an answer's header unless it is told otherwise. */
const MAX_ADDRESS_LENGTH = 3 * 1024

/**
 * An address of ours that begins the attempt in the browser that opens it first, once. Whatever is in front of us, the address
 * that the provider knows reaches us. Throws validation_failed where the order is too long for an address.
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
      message: 'The parameters are too long: shorten redirect_to, scopes or those for the provider',
    })
  }
  return address.href
}

export interface AddressToBegin {
  id: string
  order: SignInOrder
  /** The parameter itself. */
  begin: string
}

/** Reads what such an address holds. */
export function readAddressToBegin({ attemptKey, now }: Deps, begin: string): AddressToBegin {
  const { id, expiresAt, ...order } = unsealOrder(attemptKey, begin)
  if (expiresAt <= now().getTime()) throw apiError('bad_oauth_state', { message: 'This address has expired' })
  const { inviteTokenHash: hash } = order
  return { id, begin, order: { ...order, inviteTokenHash: hash === null ? null : Buffer.from(hash, 'base64') } }
}

function unsealOrder(key: Deps['attemptKey'], begin: string): Carried {
  try {
    return unseal<Carried>(key, begin)
  } catch (cause) {
    throw apiError('bad_oauth_state', { message: 'This address is not complete', cause })
  }
}
