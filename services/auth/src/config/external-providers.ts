import { baseUrl, boolean, list, oneOf, text, type Variables } from '@services/common/config'
import { forEach } from './for-each.ts'

/** External providers, as named in `provider`, `/settings` and `EXTERNAL_<PROVIDER>_…`. */
export const EXTERNAL_PROVIDERS = [
  'apple',
  'azure',
  'bitbucket',
  'discord',
  'facebook',
  'figma',
  'github',
  'gitlab',
  'google',
  'keycloak',
  'linkedin',
  'notion',
  'slack',
  'snapchat',
  'spotify',
  'twitch',
  'twitter',
  'workos',
] as const
export type ExternalProvider = (typeof EXTERNAL_PROVIDERS)[number]

/** Settings of one provider, built-in or the operator's own. */
export interface ExternalProviderSettings {
  enabled: boolean
  /** The first one identifies us in a browser; id_tokens may name any. */
  clientIds: readonly string[]
  secret: string
  redirectUri: string
  url: string | undefined
  emailOptional: boolean
  skipNonceCheck: boolean
  /** Whether a verified address links the account to the user with that address. */
  linking: 'verified' | 'never'
}

/** Settings of each provider, without their prefix. */
export const providerVariables = (title: string, emailOptional: boolean) =>
  ({
    ENABLED: boolean(`Sign-in with ${title}.`, { default: 'false' }),
    CLIENT_ID: list('OAuth client id; required when enabled. Further ids are accepted as audience of id_tokens.'),
    SECRET: text('OAuth client secret; required when enabled.'),
    REDIRECT_URI: baseUrl('Address of `/callback` registered at the provider; required when enabled.'),
    URL: baseUrl('Base address that replaces the public one.'),
    EMAIL_OPTIONAL: boolean('Accounts without an e-mail address may sign in.', { default: String(emailOptional) }),
    SKIP_NONCE_CHECK: boolean('POST /token accepts id_tokens without checking their nonce.', { default: 'false' }),
    LINKING: oneOf(
      ['verified', 'never'],
      'Whether an address verified by the provider links its account to the user with that address.',
      { default: 'verified' },
    ),
  }) satisfies Variables

const prefixOf = (name: string) => `EXTERNAL_${name.toUpperCase()}_`

export const prefixed = (prefix: string, variables: Variables): Variables =>
  Object.fromEntries(Object.entries(variables).map(([name, variable]) => [prefix + name, variable]))

export const externalProviderVariables = forEach(EXTERNAL_PROVIDERS, (name) =>
  prefixed(prefixOf(name), {
    ...providerVariables(name, name === 'snapchat'),
    ...(name === 'keycloak' ? { URL: baseUrl("The realm's address; required when enabled.") } : {}),
  }),
)

export function settingsBehind(prefix: string, values: Record<string, unknown>): ExternalProviderSettings {
  const setting = (name: string) => values[prefix + name]
  return {
    enabled: setting('ENABLED') as boolean,
    // A missing value is refused on use (adapters/providers/index.ts).
    clientIds: (setting('CLIENT_ID') as string[] | undefined) ?? [],
    secret: (setting('SECRET') as string | undefined) ?? '',
    redirectUri: (setting('REDIRECT_URI') as string | undefined) ?? '',
    url: setting('URL') as string | undefined,
    emailOptional: setting('EMAIL_OPTIONAL') as boolean,
    skipNonceCheck: setting('SKIP_NONCE_CHECK') as boolean,
    linking: setting('LINKING') as 'verified' | 'never',
  }
}

export const externalProviderSettings = (values: Record<string, unknown>) =>
  Object.fromEntries(EXTERNAL_PROVIDERS.map((name) => [name, settingsBehind(prefixOf(name), values)])) as Record<
    ExternalProvider,
    ExternalProviderSettings
  >

export const externalProviderGaps = (values: Record<string, unknown>): string[] =>
  EXTERNAL_PROVIDERS.flatMap((name) => {
    const needed = ['CLIENT_ID', 'SECRET', 'REDIRECT_URI', ...(name === 'keycloak' ? ['URL'] : [])]
    return missingSettings(prefixOf(name), needed, values)
  })

/** Lists required settings that an enabled provider lacks. */
export function missingSettings(prefix: string, needed: string[], values: Record<string, unknown>): string[] {
  if (!values[`${prefix}ENABLED`]) return []
  const isMissing = (value: unknown) => value === undefined || (Array.isArray(value) && value.length === 0)
  return needed
    .filter((name) => isMissing(values[prefix + name]))
    .map((name) => `AUTH_${prefix}${name} is required while AUTH_${prefix}ENABLED is true`)
}
