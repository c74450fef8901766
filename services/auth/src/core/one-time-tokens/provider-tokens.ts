/** What a provider gave out for a sign-in; sealed while it waits for the application to exchange its code. */
export interface ProviderTokens {
  provider: string
  accessToken: string
  refreshToken?: string | undefined
  /** The identity that was shown; codes of before name none. */
  identityId?: string | undefined
}
