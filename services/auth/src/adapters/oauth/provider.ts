import type { JWTPayload } from 'jose'
import type { Metadata } from '../../db/tables.ts'

export interface ExternalEmail {
  email: string
  verified: boolean
  primary: boolean
}

/** Account as the provider reports it, unchecked. */
export interface ExternalAccount {
  /** Id at the provider, text or number; never reassigned. */
  sub: unknown
  emails: readonly ExternalEmail[]
  /** Members of identity_data beside id and address (contract/auth-external.md 1.2); empty ones are left out. */
  claims: Metadata
  /** Whether the provider says less this time than in a browser: nothing known of the account is lowered or lost. */
  isPartial?: boolean
}

/** JSON of a provider; `cleanAccount` checks type and size of every value that is kept. */
// biome-ignore lint/suspicious/noExplicitAny: read member by member, whatever it is
export type ProviderJson = any

export interface Endpoints {
  /** Issuer, for providers that send `iss` (RFC 9207); `iss` of others is ignored. */
  issuer?: string
  authorize: string
  token: string
  /** Base address of the profile API. */
  api: string
  idTokens?: IdTokenRules
}

/** Endpoints by Discovery 1.0. */
export interface Discovered {
  /** Issuer, or a function that reads its description. */
  discover: string | ((withinMs: number) => Promise<Endpoints>)
  /** Description at hand, and the time that it was read at. */
  known?: { endpoints: Endpoints; at: number }
  keptMs?: number
  now?: () => number
}

/** Rules by which id_tokens of the provider are recognised. */
export interface IdTokenRules {
  /** Address of the public keys (RFC 7517), or the issuer to discover it from (OpenID Connect Discovery 1.0). */
  jwks: string | { discover: string }
  isIssuer(issuer: string): boolean
}

export interface GrantedSignIn {
  endpoints: Endpoints
  accessToken: string
  /** Raw answer of the token endpoint; some providers put the account there. */
  answer: ProviderJson
  /** Verified claims of the id_token, if any. */
  idToken: JWTPayload | undefined
  /** Parameters of the callback beside the code. */
  callback: Readonly<Record<string, string>>
  client: { id: string; secret: string }
  /** GET with the access token or the given one; throws unless the answer is JSON with a 2xx status. */
  get(url: string, headers?: Record<string, string>, token?: string): Promise<ProviderJson>
}

export interface OAuth2Provider {
  protocol: 'oauth2'
  /** `base`: EXTERNAL_<P>_URL without a trailing slash; replaces the host of all addresses. */
  endpoints(base: string | undefined): Endpoints | Discovered
  scopes: readonly string[]
  /** Whether `scopes` of GET /authorize are requested too; default true. */
  takesScopes?: boolean
  /** Whether `scopes` of GET /authorize, separated by spaces, are requested instead; default false. */
  replacesScopes?: boolean
  /** Whether unknown parameters of GET /authorize are passed on; default true. */
  takesParameters?: boolean
  /**
   * Documented client authentication at the token endpoint (RFC 6749 2.3.1). `either`: unknown, basic is tried first.
   */
  clientAuthentication: 'basic' | 'post' | 'either' | 'none'
  /** Whether PKCE is documented (RFC 7636). */
  pkce?: boolean
  /** Whether answers carry an id_token with our nonce; `always` requires one, else the profile is read. */
  idToken?: 'always' | 'usually'
  /** Whether id_tokens repeat the nonce; default true. If false, it is compared only where a token has one. */
  repeatsNonce?: boolean
  /**
   * Whether the profile at `api` is that of OpenID Connect Core 5.3. It then proves an id_token straight from the token
   * endpoint that is signed by a secret of the provider's own, as realms of Keycloak do.
   */
  isProfileProof?: boolean
  /** Audiences of id_tokens from the token endpoint, beside our client id. */
  furtherAudiences?: readonly string[]
  /** Name of our client at a provider that may change; a sign-in ends if it, or an endpoint, is another one by then. */
  binding?: string
  /** Further parameters of the authorize address, made from those of GET /authorize. */
  authorizeParameters?(query: Readonly<Record<string, string>>): Record<string, string>
  /** Called with the names of claims that are left out for their size. */
  reportTooLarge?: (claims: string[]) => void
  tokenParameters?(client: { id: string; secret: string }): Record<string, string>
  identify(signIn: GrantedSignIn): Promise<ExternalAccount> | ExternalAccount
  /** Account from only a verified id_token, for providers whose id_tokens applications may send. */
  accountOfIdToken?(claims: JWTPayload, endpoints: Endpoints): ExternalAccount
}

/** Provider with OAuth 1.0a (RFC 5849). */
export interface OAuth1Provider {
  protocol: 'oauth1'
  endpoints(base: string | undefined): OAuth1Endpoints
  identify(profile: ProviderJson, endpoints: OAuth1Endpoints): ExternalAccount
}

export interface OAuth1Endpoints {
  requestToken: string
  authorize: string
  accessToken: string
  /** Profile address with its parameters. */
  profile: string
  issuer: string
}

export type Provider = OAuth2Provider | OAuth1Provider

export const onlyEmail = (email: unknown, verified: boolean): ExternalEmail[] =>
  typeof email === 'string' && email !== '' ? [{ email, verified, primary: true }] : []

export const named = (name: unknown): Metadata => ({ name, full_name: name })

export const isText = (value: unknown): value is string => typeof value === 'string' && value !== ''

/** Joins the parts of a name that are text; providers can send anything in their place. */
export const joinName = (parts: readonly unknown[], separator = ' ') => parts.filter(isText).join(separator)

export const pictured = (picture: unknown): Metadata => ({ picture, avatar_url: picture })
