import { baseUrl, boolean, list, oneOf, text, type Values, type Variables } from '@services/common/config'
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

/** Variables of each provider, without their prefix. */
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

/** Values of one provider, by the names of its variables without their prefix. */
export const valuesBehind = <V extends Variables>(prefix: string, values: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    ),
  ) as Values<V>

/** Settings of one provider, built-in or the operator's own. */
export type ExternalProviderSettings = ReturnType<typeof providerSettings>

export const providerSettings = (values: Values<ReturnType<typeof providerVariables>>) => ({
  enabled: values.ENABLED,
  /** The first one identifies us in a browser; id_tokens may name any. */
  clientIds: values.CLIENT_ID ?? [],
  // Empty if missing: refused on use (adapters/providers/index.ts).
  secret: values.SECRET ?? '',
  redirectUri: values.REDIRECT_URI ?? '',
  url: values.URL,
  emailOptional: values.EMAIL_OPTIONAL,
  skipNonceCheck: values.SKIP_NONCE_CHECK,
  /** Whether a verified address links the account to the user with that address. */
  linking: values.LINKING,
})

export const externalProviderSettings = (values: Record<string, unknown>) =>
  Object.fromEntries(
    EXTERNAL_PROVIDERS.map((name) => [name, providerSettings(valuesBehind(prefixOf(name), values))]),
  ) as Record<ExternalProvider, ExternalProviderSettings>

export const externalProviderGaps = (values: Record<string, unknown>): string[] =>
  EXTERNAL_PROVIDERS.flatMap((name) => {
    const needed = ['CLIENT_ID', 'SECRET', 'REDIRECT_URI', ...(name === 'keycloak' ? ['URL'] : [])]
    return missingSettings(prefixOf(name), needed, values)
  })

/** Lists required settings that an enabled provider lacks. */
export function missingSettings(prefix: string, needed: string[], values: Record<string, unknown>): string[] {
  const isMissing = (value: unknown) => value === undefined || (Array.isArray(value) && value.length === 0)
  return needed
    .filter((name) => values[`${prefix}ENABLED`] && isMissing(values[prefix + name]))
    .map((name) => `AUTH_${prefix}${name} is required while AUTH_${prefix}ENABLED is true`)
}
