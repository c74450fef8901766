import type { JWTPayload } from 'jose'
import type { Metadata } from '../../db/tables.ts'

/** An address a provider knows of an account, and whether its holder has proven it there. */
export interface ExternalEmail {
  email: string
  verified: boolean
  primary: boolean
}

/** An account at a provider, as the provider tells it. */
export interface ExternalAccount {
  /** Its id there, as text or as a number; never given to somebody else. */
  sub: unknown
  emails: readonly ExternalEmail[]
  /** What identity_data holds beside id and address (contract/auth-external.md 1.2); members without a value are left out. */
  claims: Metadata
}

/** JSON of a provider: every value that is kept passes `cleanAccount`, which looks at its kind and size. */
// biome-ignore lint/suspicious/noExplicitAny: read member by member, whatever it is
export type ProviderJson = any

export interface Endpoints {
  /** What it calls itself, where it says who answers (RFC 9207); `iss` of others is not looked at. */
  issuer?: string
  /** Where the browser is sent. */
  authorize: string
  token: string
  /** What profiles are read below. */
  api: string
  idTokens?: IdTokenRules
}

/** By what an id_token of a provider is known. */
export interface IdTokenRules {
  /** Address of the provider's public keys (RFC 7517), or of whom they are asked (OpenID Connect Discovery 1.0). */
  jwks: string | { discover: string }
  isIssuer(issuer: string): boolean
}

/** A sign-in whose tokens the provider has handed out. */
export interface GrantedSignIn {
  endpoints: Endpoints
  accessToken: string
  /** The token endpoint's answer as it came: some tell the account there. */
  answer: ProviderJson
  /** Checked claims of the id_token, if there was one. */
  idToken: JWTPayload | undefined
  /** What the browser brought back beside the code. */
  callback: Readonly<Record<string, string>>
  /** What we are there. */
  client: { id: string; secret: string }
  /** GET with the access token, or another one; the JSON of an answer in the 200s, else an error. */
  get(url: string, headers?: Record<string, string>, token?: string): Promise<ProviderJson>
}

export interface OAuth2Provider {
  protocol: 'oauth2'
  /** `base`: EXTERNAL_<P>_URL without a slash at its end, which stands for the host of all addresses. */
  endpoints(base: string | undefined): Endpoints | { discover: string }
  scopes: readonly string[]
  /** Whether `scopes` of GET /authorize are asked for too; true unless said otherwise. */
  takesScopes?: boolean
  /** Whether parameters of GET /authorize that are not ours go on to the provider; true unless said otherwise. */
  takesParameters?: boolean
  /** How it documents that clients say who they are at the token endpoint (RFC 6749 2.3.1). */
  clientAuthentication: 'basic' | 'post'
  /** Whether it documents PKCE (RFC 7636). */
  pkce?: boolean
  /**
   * Whether its token answers are read for an id_token, which is tied to this attempt by a nonce: `always` refuses an answer
   * without one, `usually` does with what else the provider tells.
   */
  idToken?: 'always' | 'usually'
  /** More parameters of the authorize address, from those of GET /authorize. */
  authorizeParameters?(query: Readonly<Record<string, string>>): Record<string, string>
  tokenParameters?(client: { id: string; secret: string }): Record<string, string>
  identify(signIn: GrantedSignIn): Promise<ExternalAccount> | ExternalAccount
  /** What a checked id_token alone tells; providers whose id_tokens are taken from applications have it. */
  accountOfIdToken?(claims: JWTPayload, endpoints: Endpoints): ExternalAccount
}

/** The one that still speaks OAuth 1.0a (RFC 5849). */
export interface OAuth1Provider {
  protocol: 'oauth1'
  endpoints(base: string | undefined): OAuth1Endpoints
  identify(profile: ProviderJson, endpoints: OAuth1Endpoints): ExternalAccount
}

export interface OAuth1Endpoints {
  requestToken: string
  authorize: string
  accessToken: string
  /** The account's, with the parameters that say how much of it. */
  profile: string
  issuer: string
}

export type Provider = OAuth2Provider | OAuth1Provider

/** One address, the account's only one. */
export const onlyEmail = (email: unknown, verified: boolean): ExternalEmail[] =>
  typeof email === 'string' && email !== '' ? [{ email, verified, primary: true }] : []
