// Providers of accounts: the built-in ones, and any with OpenID Connect that the operator names in the variables
// themselves, EXTERNAL_OIDC_<NAME>_ISSUER and the like.
import {
  baseUrl,
  boolean,
  type Environment,
  list,
  oneOf,
  parsed,
  text,
  type Values,
  type Variables,
} from '@services/common/config/variables'
import { jsonObject } from '../adapters/json-object.ts'
import { forEach } from './for-each.ts'

/** The eighteen of the specification, which GET /settings always lists. */
export const SPECIFIED_PROVIDERS = [
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

/** Further names in the types of the public client, which GET /settings lists only where one is enabled. */
export const FURTHER_PROVIDERS = [
  'fly',
  'kakao',
  'linkedin_oidc',
  'slack_oidc',
  'vercel_marketplace',
  'x',
  'zoom',
] as const
export type FurtherProvider = (typeof FURTHER_PROVIDERS)[number]

/** Built-in providers, as named in `provider`, `/settings` and `EXTERNAL_<PROVIDER>_…`. */
export const EXTERNAL_PROVIDERS = [...SPECIFIED_PROVIDERS, ...FURTHER_PROVIDERS]
export type ExternalProvider = (typeof EXTERNAL_PROVIDERS)[number]

/** Variables of each provider, without their prefix. */
const providerVariables = (title: string, emailOptional: boolean) =>
  ({
    ENABLED: boolean(`Sign-in with ${title}.`, { default: 'false' }),
    CLIENT_ID: list('OAuth client id; required when enabled. Further ids are accepted as audience of id_tokens.'),
    SECRET: text('OAuth client secret; required when enabled.', { secret: true }),
    REDIRECT_URI: baseUrl('Address of `/callback` registered at the provider; required when enabled.'),
    URL: baseUrl('Base address that replaces the public one.'),
    EMAIL_OPTIONAL: boolean('Accounts without an e-mail address may sign in.', { default: String(emailOptional) }),
    SKIP_NONCE_CHECK: boolean('POST /token accepts id_tokens without checking their nonce.', { default: 'false' }),
    LINKING: parsed(
      'verified, never, group:name',
      'Whether an address verified by the provider links its account to the user with that address. A group links its providers with each other only.',
      { default: 'verified' },
      parseLinking,
    ),
  }) satisfies Variables

export type LinkingRule = 'verified' | 'never' | `group:${string}`

export const isLinkingRule = (text: string): text is LinkingRule =>
  /^(verified|never|group:[a-z0-9-]{1,32})$/.test(text)

/** Refusal of any other text, in words that complete "NAME …". */
export const LINKING_RULES = 'must be verified, never or group: and up to 32 of a-z, 0-9 and -'

function parseLinking(value: string): LinkingRule {
  const rule = value.toLowerCase()
  if (!isLinkingRule(rule)) throw new Error(LINKING_RULES)
  return rule
}

const prefixOf = (name: string) => `EXTERNAL_${name.toUpperCase()}_`

const prefixed = (prefix: string, variables: Variables): Variables =>
  Object.fromEntries(Object.entries(variables).map(([name, variable]) => [prefix + name, variable]))

export const externalProviderVariables = forEach(EXTERNAL_PROVIDERS, (name) =>
  prefixed(prefixOf(name), {
    ...providerVariables(name, name === 'snapchat'),
    ...(name === 'keycloak' ? { URL: baseUrl("The realm's address; required when enabled.") } : {}),
  }),
)

/** Values of one provider, by the names of its variables without their prefix. */
const valuesBehind = <V extends Variables>(prefix: string, values: Record<string, unknown>) =>
  Object.fromEntries(
    Object.entries(values).flatMap(([name, value]) =>
      name.startsWith(prefix) ? [[name.slice(prefix.length), value]] : [],
    ),
  ) as Values<V>

export type ExternalProviderSettings = ReturnType<typeof providerSettings>

const providerSettings = (values: Values<ReturnType<typeof providerVariables>>) => ({
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

function missingSettings(prefix: string, needed: string[], values: Record<string, unknown>): string[] {
  const isMissing = (value: unknown) => value === undefined || (Array.isArray(value) && value.length === 0)
  return needed
    .filter((name) => values[`${prefix}ENABLED`] && isMissing(values[prefix + name]))
    .map((name) => `AUTH_${prefix}${name} is required while AUTH_${prefix}ENABLED is true`)
}

/** Variables of each provider of the operator, without the prefix `EXTERNAL_OIDC_<NAME>_`. */
export const oidcVariables = {
  ...providerVariables('this provider', false),
  ISSUER: baseUrl('Issuer; serves `/.well-known/openid-configuration`. Required when enabled.'),
  SCOPES: list('Requested scopes, separated by commas.', { default: 'openid,email,profile' }),
  CLAIMS: parsed(
    'JSON',
    'Claims by member of an identity, such as `{"full_name":"displayName","email":"upn"}`, beside the standard ones.',
    { default: '{}' },
    parseClaims,
  ),
  CLIENT_AUTHENTICATION: oneOf(['basic', 'post'], 'Client authentication at the token endpoint.', { default: 'basic' }),
} satisfies Variables

const NAMED = new RegExp(
  `^(?:AUTH_)?EXTERNAL_OIDC_([A-Z][A-Z0-9_]{0,29}?)_(?:${Object.keys(oidcVariables).join('|')})$`,
)

const oidcPrefixOf = (name: string) => prefixOf(`oidc_${name}`)

/** Names of providers that have a variable, in lower case as in `provider`. */
export const oidcProviderNames = (...sources: Environment[]): string[] => {
  const names = sources.flatMap((source) => Object.keys(source)).map((name) => NAMED.exec(name)?.[1]?.toLowerCase())
  return [...new Set(names.filter((name) => name !== undefined))].sort()
}

interface NamedProviders<Known, Own> {
  providers: Readonly<Record<string, Known>>
  ownProviders: Readonly<Record<string, Own>>
}

/** Full names of a variable of all providers, and of the operator's own, whose settings fit. */
export const settingNamesOf = <Known, Own>(
  { providers, ownProviders }: NamedProviders<Known, Own>,
  variable: string,
  fits: (settings: Known | Own) => unknown,
): string[] =>
  [...Object.entries(providers), ...Object.entries(ownProviders)]
    .filter(([, settings]) => fits(settings))
    .map(([name]) => providerSettingName(name, variable))

/** Full name of a variable of a provider, as in the log. The address of an operator's own provider is its issuer. */
export function providerSettingName(provider: string, variable: string): string {
  if (EXTERNAL_PROVIDERS.some((known) => known === provider)) return `AUTH_${prefixOf(provider)}${variable}`
  return `AUTH_${oidcPrefixOf(provider)}${variable === 'URL' ? 'ISSUER' : variable}`
}

export const oidcProviderVariables = (names: readonly string[]): Variables =>
  forEach(names, (name) => prefixed(oidcPrefixOf(name), oidcVariables))

export type OidcProviderSettings = ReturnType<typeof oidcSettings>

const oidcSettings = (values: Values<typeof oidcVariables>) => ({
  ...providerSettings(values),
  issuer: values.ISSUER ?? '',
  scopes: values.SCOPES,
  /** Claim by member of identity_data. */
  claims: values.CLAIMS,
  clientAuthentication: values.CLIENT_AUTHENTICATION,
})

export const oidcProviderSettings = (names: readonly string[], values: Record<string, unknown>) =>
  Object.fromEntries(names.map((name) => [name, oidcSettings(valuesBehind(oidcPrefixOf(name), values))]))

/** Reserved names: the built-in providers, and identities and ways to sign in of our own. */
const TAKEN: readonly string[] = [...EXTERNAL_PROVIDERS, 'email', 'phone', 'anonymous', 'web3', 'passkey']

export const oidcProviderProblems = (names: readonly string[]): string[] =>
  names
    .filter((name) => TAKEN.includes(name))
    .map((name) => `AUTH_${oidcPrefixOf(name)}… takes a name that is in use: ${name}`)

export const oidcProviderGaps = (names: readonly string[], values: Record<string, unknown>): string[] =>
  names.flatMap((name) =>
    missingSettings(oidcPrefixOf(name), ['CLIENT_ID', 'SECRET', 'REDIRECT_URI', 'ISSUER'], values),
  )

function parseClaims(value: string): Record<string, string> {
  const claims = jsonObject(value, 'must be a JSON object')
  if (Object.values(claims).some((claim) => typeof claim !== 'string')) {
    throw new Error('must map each member to the name of a claim')
  }
  return claims as Record<string, string>
}
