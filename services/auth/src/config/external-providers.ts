import { baseUrl, boolean, list, oneOf, text, type Variables } from '@services/common/config'
import { forEach } from './for-each.ts'

/** The eighteen external providers, as they are named in `provider`, `/settings` and `EXTERNAL_<PROVIDER>_…`. */
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

/** What is set for one provider, of the eighteen or any other. */
export interface ExternalProviderSettings {
  enabled: boolean
  /** The first one is ours in a browser; id_tokens may be for any. */
  clientIds: readonly string[]
  secret: string
  redirectUri: string
  url: string | undefined
  emailOptional: boolean
  skipNonceCheck: boolean
  /** Whether an address the provider has verified links its account to the user who has that address. */
  linking: 'verified' | 'never'
}

/** Settings each provider has; `NAME_` is in front of them. */
export const providerVariables = (title: string, emailOptional: boolean) =>
  ({
    ENABLED: boolean(`Sign-in with ${title}.`, { default: 'false' }),
    CLIENT_ID: list('OAuth client id; required when enabled. Further ones are accepted as audience of id_tokens.'),
    SECRET: text('OAuth client secret; required when enabled.'),
    REDIRECT_URI: baseUrl('Address of `/callback` as the provider knows it; required when enabled.'),
    URL: baseUrl('Base address instead of the public one.'),
    EMAIL_OPTIONAL: boolean('Accounts without an e-mail address may sign in.', { default: String(emailOptional) }),
    SKIP_NONCE_CHECK: boolean('POST /token takes id_tokens without looking at their nonce.', { default: 'false' }),
    LINKING: oneOf(
      ['verified', 'never'],
      'Whether an address it has verified links its account to the user who has that address.',
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

/** The settings behind a prefix. */
export function settingsBehind(prefix: string, values: Record<string, unknown>): ExternalProviderSettings {
  const setting = (name: string) => values[prefix + name]
  return {
    enabled: setting('ENABLED') as boolean,
    // A missing value is refused at its use (../providers/index.ts).
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

/** What an enabled provider lacks. */
export function missingSettings(prefix: string, needed: string[], values: Record<string, unknown>): string[] {
  if (!values[`${prefix}ENABLED`]) return []
  const isMissing = (value: unknown) => value === undefined || (Array.isArray(value) && value.length === 0)
  return needed
    .filter((name) => isMissing(values[prefix + name]))
    .map((name) => `AUTH_${prefix}${name} is required while AUTH_${prefix}ENABLED is true`)
}
