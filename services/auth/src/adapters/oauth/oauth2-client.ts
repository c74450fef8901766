// Signing in by OAuth 2.0 and OpenID Connect. openid-client speaks the protocol; this file handles providers'
// deviations: token answers outside RFC 6749 (`standardised`) and issuers with more than one name (id-token.ts).
import { createHash } from 'node:crypto'
import type { JWTPayload } from 'jose'
import {
  allowInsecureRequests,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  type ClientAuth,
  ClientSecretPost,
  Configuration,
  calculatePKCECodeChallenge,
  customFetch,
  fetchProtectedResource,
  None,
} from 'openid-client'
import { apiError } from '../../errors.ts'
import { cleanAccount } from './clean-account.ts'
import type { EndpointsOf } from './endpoints.ts'
import { isSignedByOtherSecret, matchesAccessToken, resigned, type VerifyIdToken } from './id-token.ts'
import type { Endpoints, OAuth2Provider, ProviderJson } from './provider.ts'
import type { ClientSettings, SignInClient, SignInSecrets } from './sign-in-client.ts'
import { type UpstreamFetch, upstreamFailed } from './upstream.ts'

interface Client {
  id: string
  secret: string
}

export function createOAuth2Client(
  provider: OAuth2Provider,
  settings: ClientSettings,
  endpointsOf: EndpointsOf,
  verifyIdToken: VerifyIdToken,
): SignInClient {
  const [clientId = ''] = settings.clientIds

  /** Authentication that a token endpoint of unknown habits accepted last. */
  let accepted: 'basic' | 'post' = 'basic'

  /** Without a client it is for addresses alone. */
  function configure(
    { issuer = settings.redirectUri, authorize, token, api }: Endpoints,
    client?: Client,
    either = accepted,
  ) {
    const server = { issuer, authorization_endpoint: authorize, token_endpoint: token }
    const how = provider.clientAuthentication === 'either' ? either : provider.clientAuthentication
    const authentication = client ? clientAuthentication(how, client) : None()
    const config = new Configuration(server, clientId, client?.secret, authentication)
    if ([authorize, token, api].some((url) => url.startsWith('http:'))) allowInsecureRequests(config)
    return config
  }

  /** Exchanges the code; where the server refuses our authentication, once more by the other one. */
  async function exchangeEitherWay(
    endpoints: Endpoints,
    client: Client,
    exchangeBy: (config: Configuration) => Promise<ProviderJson>,
  ): Promise<{ config: Configuration; answer: ProviderJson }> {
    const config = configure(endpoints, client)
    try {
      return { config, answer: await exchangeBy(config) }
    } catch (error) {
      if (provider.clientAuthentication !== 'either' || !mayBeUnauthenticated(error)) throw error
    }
    const other = accepted === 'basic' ? 'post' : 'basic'
    const otherConfig = configure(endpoints, client, other)
    const answer = await exchangeBy(otherConfig)
    accepted = other
    return { config: otherConfig, answer }
  }

  /** Exchanges the code and returns the token endpoint's whole answer. */
  async function exchange(
    config: Configuration,
    { client, fetchUpstream }: { client: Client; fetchUpstream: UpstreamFetch },
    callback: Readonly<Record<string, string>>,
    verifier: string | undefined,
  ): Promise<ProviderJson> {
    let answer: ProviderJson
    config[customFetch] = async (url, init) => {
      const response = await fetchUpstream(url, init as RequestInit)
      answer = parseTokenAnswer(await response.text())
      return Response.json(standardised(answer), { status: response.status })
    }
    const returned = new URL(settings.redirectUri)
    for (const name of ['code', 'state', 'iss']) {
      if (callback[name] !== undefined) returned.searchParams.set(name, callback[name])
    }
    await authorizationCodeGrant(
      config,
      returned,
      { expectedState: callback.state as string, ...(verifier && { pkceCodeVerifier: verifier }) },
      provider.tokenParameters?.(client),
    )
    config[customFetch] = (url, init) => fetchUpstream(url, init as RequestInit)
    return answer
  }

  async function checkIdToken(
    endpoints: Endpoints,
    answer: ProviderJson,
    { nonce, secret }: Pick<SignInSecrets, 'nonce'> & { secret: string },
    now: Date,
  ): Promise<{ claims: JWTPayload; isVerified: boolean } | undefined> {
    const { idTokens } = endpoints
    const idToken: unknown = answer.id_token
    if (!provider.idToken || !idTokens) return undefined
    if (typeof idToken !== 'string') {
      if (provider.idToken === 'always') throw new Error('no OIDC ID token present in response')
      return undefined
    }
    const audiences = [clientId, ...(provider.furtherAudiences ?? [])]
    const expectation = { rules: idTokens, audiences, secret, now }
    let isVerified = true
    const claims = await verifyIdToken(idToken, expectation).catch((error) => {
      if (!provider.isProfileProof || !isSignedByOtherSecret(idToken, error)) throw error
      // TLS vouches for the sender (OpenID Connect Core 3.1.3.7, rule 6), the profile for the account.
      isVerified = false
      return verifyIdToken(resigned(idToken, secret), expectation)
    })
    const isUnrepeated = provider.repeatsNonce === false && claims.nonce === undefined
    if (nonce !== undefined && claims.nonce !== nonce && !isUnrepeated)
      throw new Error('the id_token has the nonce of another sign-in')
    if (!matchesAccessToken(idToken, claims, answer.access_token))
      throw new Error('the at_hash of the id_token does not match')
    return { claims, isVerified }
  }

  return {
    asksFirst: false,
    async begin({ state, scopes, parameters, random }) {
      const endpoints = await endpointsOf()
      const verifier = provider.pkce ? random(32).toString('base64url') : undefined
      const passedOn = provider.takesParameters === false ? {} : parameters
      const nonce = provider.idToken ? passedOn.nonce || random(16).toString('base64url') : undefined
      const scope = requestedScopes(provider, scopes).join(' ')
      const url = buildAuthorizationUrl(configure(endpoints), {
        ...passedOn,
        ...provider.authorizeParameters?.(parameters),
        redirect_uri: settings.redirectUri,
        state,
        ...(scope && { scope }),
        ...(nonce && { nonce }),
        ...(verifier && {
          code_challenge: await calculatePKCECodeChallenge(verifier),
          code_challenge_method: 'S256',
        }),
      })
      return { url: url.href, secrets: { verifier, nonce, binding: bindingTo(provider, endpoints) } }
    },

    async finish(callback, secrets, now) {
      const { code } = callback
      if (!code) throw apiError('bad_oauth_callback', { message: 'OAuth callback with missing authorization code' })
      const fetchUpstream = settings.openFetch(settings.withinMs)
      const endpoints = await endpointsOf()
      if (secrets.binding !== bindingTo(provider, endpoints)) {
        throw apiError('bad_oauth_state', { message: 'The provider was changed during this sign-in' })
      }
      const client = { id: clientId, secret: settings.openSecret() }
      const returned = endpoints.issuer ? callback : withoutIssuer(callback)
      const { config, answer } = await exchangeEitherWay(endpoints, client, (config) =>
        exchange(config, { client, fetchUpstream }, returned, secrets.verifier),
      ).catch((cause: unknown) => {
        throw upstreamFailed(`Unable to exchange external code: ${code.slice(0, 4)}`, cause)
      })
      try {
        const idToken = await checkIdToken(endpoints, answer, { nonce: secrets.nonce, secret: client.secret }, now)
        let profile: ProviderJson | undefined
        const account = await provider.identify({
          endpoints,
          accessToken: answer.access_token,
          answer,
          idToken: idToken?.claims,
          callback,
          client,
          get: async (url, headers, token = answer.access_token) => {
            const json = await getJson(config, token, url, headers)
            if (url === endpoints.api) profile = json
            return json
          },
        })
        if (idToken && provider.isProfileProof) requireSameAccount(idToken, profile)
        const refreshToken = typeof answer.refresh_token === 'string' ? answer.refresh_token : undefined
        return {
          account: cleanAccount(account, provider.reportTooLarge),
          accessToken: answer.access_token,
          refreshToken,
        }
      } catch (cause) {
        throw upstreamFailed('Error getting user profile from external provider', cause)
      }
    },
  }
}

/**
 * Names our client and the endpoints that get code, credentials and access token. A description may name others by the
 * time of the callback (RFC 9700 4.4.2). Undefined for a provider that cannot change while the service runs.
 */
const bindingTo = ({ binding }: OAuth2Provider, { authorize, token, api }: Endpoints): string | undefined =>
  binding &&
  createHash('sha256')
    .update(JSON.stringify([binding, authorize, token, api]))
    .digest('base64url')

/**
 * OpenID Connect Core 5.3.2: a profile with another `sub` must be rejected. It is missing only beside a verified token.
 */
function requireSameAccount(
  { claims, isVerified }: { claims: JWTPayload; isVerified: boolean },
  profile: ProviderJson | undefined,
): void {
  const { sub } = profile ?? {}
  if (sub === undefined ? !isVerified : sub !== claims.sub) throw new Error('the profile belongs to another account')
}

/**
 * Authenticates the client at the token endpoint (RFC 6749 2.3.1). Basic is our own: the library also escapes `-` and
 * `_`, which some providers do not decode (Notion's ids are UUIDs).
 */
function clientAuthentication(how: 'basic' | 'post' | 'none', { id, secret }: Client): ClientAuth {
  if (how === 'none') return None()
  if (how === 'post') return ClientSecretPost(secret)
  const credentials = Buffer.from(`${encodeURIComponent(id)}:${encodeURIComponent(secret)}`).toString('base64')
  return (_server, _client, _body, headers) => headers.set('authorization', `Basic ${credentials}`)
}

/** Without a known issuer `iss` has nothing to match (RFC 9207). */
const withoutIssuer = ({ iss: _unknown, ...others }: Readonly<Record<string, string>>) => others

/** Failures that a server answered with. Many do not call wrong authentication `invalid_client` (RFC 6749 5.2). */
const mayBeUnauthenticated = (error: unknown) => {
  const { code, error: refusal } = (error ?? {}) as { code?: unknown; error?: unknown }
  return ANSWERED.includes(String(code)) && refusal !== 'invalid_grant'
}
const ANSWERED = ['OAUTH_RESPONSE_BODY_ERROR', 'OAUTH_INVALID_RESPONSE', 'OAUTH_RESPONSE_IS_NOT_CONFORM']

function requestedScopes(provider: OAuth2Provider, scopes: string): readonly string[] {
  if (!provider.replacesScopes) {
    return [...provider.scopes, ...(provider.takesScopes === false ? [] : splitScopes(scopes))]
  }
  const chosen = scopes.split(/[\s,]+/).filter(Boolean)
  if (chosen.length === 0) return provider.scopes
  return provider.idToken && !chosen.includes('openid') ? ['openid', ...chosen] : chosen
}

/** Splits `scopes` at commas; the public client's spaces need no splitting. */
const splitScopes = (scopes: string) =>
  scopes
    .split(',')
    .map((scope) => scope.trim())
    .filter(Boolean)

/** Reads JSON (RFC 6749), or the form that older providers answer with. */
function parseTokenAnswer(text: string): ProviderJson {
  if (!text.trimStart().startsWith('{')) return Object.fromEntries(new URLSearchParams(text))
  return JSON.parse(text)
}

/** The members that the library needs: some providers omit token_type, rename it, or answer scopes as a list. */
const standardised = ({ access_token, error, error_description }: ProviderJson) =>
  error === undefined ? { access_token, token_type: 'bearer' } : { error: String(error), error_description }

async function getJson(config: Configuration, accessToken: string, url: string, headers: Record<string, string> = {}) {
  const requestHeaders = new Headers({ accept: 'application/json', ...headers })
  const response = await fetchProtectedResource(config, accessToken, new URL(url), 'GET', null, requestHeaders)
  if (!response.ok) throw new Error(`the provider answered ${response.status}`)
  const json: unknown = await response.json()
  if (typeof json !== 'object' || json === null)
    throw new Error('the provider answered with something other than a JSON object')
  return json as ProviderJson
}
