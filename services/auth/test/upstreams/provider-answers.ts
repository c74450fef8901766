import { ACCESS_TOKEN, type FarAccount, type FarEndpoint, type Visit } from './sign-in-providers.ts'

type Endpoints = Record<string, FarEndpoint>

/** Answer of a token endpoint (RFC 6749 5.1), with a provider's additions. */
export const tokenEndpoint = (
  path: string,
  more: (visit: Visit) => object | Promise<object> = () => ({}),
): Endpoints => ({
  [path]: {
    step: 'token',
    answer: async (visit) => ({
      access_token: ACCESS_TOKEN,
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: 'a-refresh-token-of-the-provider',
      ...(await more(visit)),
    }),
  },
})

export const profileEndpoint = (path: string, answer: (account: FarAccount) => unknown): Endpoints => ({
  [path]: { step: 'profile', answer: ({ account }) => answer(account) },
})

export const keysEndpoint = (path: string): Endpoints => ({ [path]: { step: 'keys', answer: ({ keys }) => keys } })
