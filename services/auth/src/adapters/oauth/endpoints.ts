import { allowInsecureRequests, customFetch, discovery, type ServerMetadata } from 'openid-client'
import { apiError } from '../../errors.ts'
import type { Endpoints, OAuth2Provider } from './provider.ts'
import { boundedFetch } from './upstream.ts'

/** Lifetime of a discovered description. */
const KEPT_MS = 60 * 60 * 1000
/** Wait after a failure; the last description stays in use. */
const ASKED_AGAIN_AFTER_MS = 30 * 1000
/** Time for a new description where there is one: the rest of the request's time is for the sign-in. */
const RENEWED_WITHIN_MS = 3_000

export type EndpointsOf = () => Promise<Endpoints>

/** Addresses from a provider's file or Discovery 1.0; provider_unavailable if that was never reached. */
export function createEndpoints(provider: OAuth2Provider, base: string | undefined, withinMs: number): EndpointsOf {
  const endpoints = provider.endpoints(base)
  if (!('discover' in endpoints)) return async () => endpoints
  const { discover: source, known: given, keptMs = KEPT_MS, now = Date.now } = endpoints
  const read = typeof source === 'string' ? (within: number) => discover(source, within) : source
  let known = given && { endpoints: given.endpoints, until: given.at + keptMs }
  let asking: Promise<Endpoints> | undefined
  const ask = async () => {
    try {
      const found = await read(known ? Math.min(withinMs, RENEWED_WITHIN_MS) : withinMs)
      known = { endpoints: found, until: now() + keptMs }
      return found
    } catch (cause) {
      if (!known) throw apiError('provider_unavailable', { cause, retryAfterSeconds: 5 })
      known.until = now() + ASKED_AGAIN_AFTER_MS
      return known.endpoints
    } finally {
      asking = undefined
    }
  }
  return async () => {
    if (known && known.until > now()) return known.endpoints
    asking ??= ask()
    return asking
  }
}

async function discover(issuer: string, withinMs: number): Promise<Endpoints> {
  const server = await readDescription(issuer, withinMs)
  const { authorization_endpoint: authorize, token_endpoint: token, jwks_uri: jwks, userinfo_endpoint: api } = server
  if (!isWebAddress(authorize) || !isWebAddress(token) || !isWebAddress(jwks) || (api && !isWebAddress(api))) {
    throw new Error('the provider description lacks a valid endpoint')
  }
  const isOurs = (found: string) => found === server.issuer
  return { issuer: server.issuer, authorize, token, api: api ?? '', idTokens: { jwks, isIssuer: isOurs } }
}

/** The library checks only the issuer of a description. */
const isWebAddress = (value: unknown): value is string =>
  typeof value === 'string' && /^https?:$/.test(URL.parse(value)?.protocol ?? '')

/** Reads the description at the well-known address; throws if it names another issuer. */
export async function readDescription(issuer: string, withinMs: number): Promise<ServerMetadata> {
  const fetchOnce = boundedFetch(withinMs)
  const config = await discovery(new URL(issuer), 'unused', undefined, undefined, {
    [customFetch]: (url, init) => fetchOnce(url, init as RequestInit),
    execute: issuer.startsWith('http:') ? [allowInsecureRequests] : [],
  })
  return config.serverMetadata()
}
