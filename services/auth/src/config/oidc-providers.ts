// Providers without a file of their own: any with OpenID Connect, named by the operator in the variables themselves,
// EXTERNAL_OIDC_<NAME>_ISSUER and the like.
import { baseUrl, type Environment, list, oneOf, parsed, type Values, type Variables } from '@services/common/config'
import {
  EXTERNAL_PROVIDERS,
  missingSettings,
  prefixed,
  providerSettings,
  providerVariables,
  valuesBehind,
} from './external-providers.ts'
import { forEach } from './for-each.ts'
import { jsonObject } from './json-object.ts'

/** Variables of each one, without the prefix `EXTERNAL_OIDC_<NAME>_`. */
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

const prefixOf = (name: string) => `EXTERNAL_OIDC_${name.toUpperCase()}_`

/** Names of providers that have a variable, in lower case as in `provider`. */
export const oidcProviderNames = (...sources: Environment[]): string[] => {
  const names = sources.flatMap((source) => Object.keys(source)).map((name) => NAMED.exec(name)?.[1]?.toLowerCase())
  return [...new Set(names.filter((name) => name !== undefined))].sort()
}

export const oidcProviderVariables = (names: readonly string[]): Variables =>
  forEach(names, (name) => prefixed(prefixOf(name), oidcVariables))

export type OidcProviderSettings = ReturnType<typeof settingsOf>

const settingsOf = (values: Values<typeof oidcVariables>) => ({
  ...providerSettings(values),
  issuer: values.ISSUER ?? '',
  scopes: values.SCOPES,
  /** Claim by member of identity_data. */
  claims: values.CLAIMS,
  clientAuthentication: values.CLIENT_AUTHENTICATION,
})

export const oidcProviderSettings = (names: readonly string[], values: Record<string, unknown>) =>
  Object.fromEntries(names.map((name) => [name, settingsOf(valuesBehind(prefixOf(name), values))]))

/** Reserved names: the built-in providers, and identities of our own. */
const TAKEN: readonly string[] = [...EXTERNAL_PROVIDERS, 'email', 'phone', 'anonymous']

export const oidcProviderProblems = (names: readonly string[]): string[] =>
  names
    .filter((name) => TAKEN.includes(name))
    .map((name) => `AUTH_${prefixOf(name)}… takes a name that is in use: ${name}`)

export const oidcProviderGaps = (names: readonly string[], values: Record<string, unknown>): string[] =>
  names.flatMap((name) => missingSettings(prefixOf(name), ['CLIENT_ID', 'SECRET', 'REDIRECT_URI', 'ISSUER'], values))

function parseClaims(value: string): Record<string, string> {
  const claims = jsonObject(value, 'must be a JSON object')
  if (Object.values(claims).some((claim) => typeof claim !== 'string')) {
    throw new Error('must map each member to the name of a claim')
  }
  return claims as Record<string, string>
}
