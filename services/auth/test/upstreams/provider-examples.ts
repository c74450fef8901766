import { FURTHER_EXAMPLES } from './further-examples.ts'
import { ID_TOKEN_EXAMPLES } from './id-token-examples.ts'
import { MORE_PROFILE_EXAMPLES } from './more-profile-examples.ts'
import { PROFILE_EXAMPLES } from './profile-examples.ts'
import type { ProviderExample } from './sign-in-providers.ts'
import { TWITTER_EXAMPLE } from './twitter-example.ts'

/** All built-in providers: a new one is an entry in one of these tables. */
export const PROVIDER_EXAMPLES: Record<string, ProviderExample> = {
  ...ID_TOKEN_EXAMPLES,
  ...PROFILE_EXAMPLES,
  ...MORE_PROFILE_EXAMPLES,
  ...FURTHER_EXAMPLES,
  twitter: TWITTER_EXAMPLE,
}
