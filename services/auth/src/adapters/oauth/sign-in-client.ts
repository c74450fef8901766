// Protocols of external sign-in: OAuth 1.0a, OAuth 2.0, OpenID Connect and id_tokens. Providers are data for them.
import type { ExternalProviderSettings } from '../../config/external-providers.ts'
import type { CleanAccount } from './clean-account.ts'
import type { OpenFetch } from './upstream.ts'

/** Settings of a client; `withinMs` bounds all requests of one step together. */
export type ClientSettings = Pick<ExternalProviderSettings, 'clientIds' | 'redirectUri' | 'url'> & {
  openSecret: () => string
  withinMs: number
  openFetch: OpenFetch
}

/** Secrets of a sign-in, kept here until the browser returns. */
export interface SignInSecrets {
  /** PKCE verifier (RFC 7636). */
  verifier?: string | undefined
  nonce?: string | undefined
  /** Server that it began at. */
  binding?: string | undefined
  /** Request token of OAuth 1.0a and its secret. */
  requestToken?: { token: string; secret: string } | undefined
}

export interface SignInRequest {
  state: string
  /** Scopes of the application, added to the provider's own. */
  scopes: string
  /** Parameters of GET /authorize that are not ours. */
  parameters: Readonly<Record<string, string>>
  random: (size: number) => Buffer
}

export interface SignedIn {
  account: CleanAccount
  accessToken: string
  refreshToken: string | undefined
}

/** Sign-in in two steps, between which the browser visits the provider. */
export interface SignInClient {
  /** Whether `begin` sends a request to the provider. */
  asksFirst: boolean
  /** Returns the address to send the browser to. Throws provider_unavailable if the provider cannot be asked. */
  begin(request: SignInRequest): Promise<{ url: string; secrets: SignInSecrets }>
  /** Redeems the callback. Throws as contract/auth-external.md 2.3, stage 2, says. */
  finish(callback: Readonly<Record<string, string>>, secrets: SignInSecrets, now: Date): Promise<SignedIn>
}
