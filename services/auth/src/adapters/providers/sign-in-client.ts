import type { CleanAccount } from './clean-account.ts'

/** What a sign-in at a provider keeps on our side until the browser is back. */
export interface SignInSecrets {
  /** Of PKCE (RFC 7636). */
  verifier?: string | undefined
  nonce?: string | undefined
  /** Of OAuth 1.0a: what the browser was sent with, and the secret that belongs to it. */
  requestToken?: { token: string; secret: string } | undefined
}

export interface SignInRequest {
  state: string
  /** As the application sent them, beside the provider's own. */
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

/** Signing in at a provider: two steps, between which the browser is there. */
export interface SignInClient {
  /** Whether `begin` asks the provider each time. */
  asksFirst: boolean
  /** Where to send the browser. Throws provider_unavailable where the provider must be asked first and is not there. */
  begin(request: SignInRequest): Promise<{ url: string; secrets: SignInSecrets }>
  /** Redeems what the browser came back with. Throws as contract/auth-external.md 2.3, stage 2, says. */
  finish(callback: Readonly<Record<string, string>>, secrets: SignInSecrets, now: Date): Promise<SignedIn>
}
