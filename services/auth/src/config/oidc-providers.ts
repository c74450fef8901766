// Providers that nobody has written a file for: any that speaks OpenID Connect, named by the operator in the variables
// themselves, EXTERNAL_OIDC_<NAME>_ISSUER and the like.
import { baseUrl, type Environment, list, oneOf, parsed, type Variables } from '@services/common/config'
import {
  EXTERNAL_PROVIDERS,
  type ExternalProviderSettings,
  missingSettings,
  prefixed,
  providerVariables,
  settingsBehind,
} from './external-providers.ts'

export interface OidcProviderSettings extends ExternalProviderSettings {
  issuer: string
  scopes: readonly string[]
  /** Members of identity_data by the claim they are read from. */
  claims: Readonly<Record<string, string>>
  clientAuthentication: 'basic' | 'post'
}

/** Settings of each of them, behind `EXTERNAL_OIDC_<NAME>_`. */
export const oidcVariables = {
  ...providerVariables('this provider', false),
  ISSUER: baseUrl('Issuer, below which `/.well-known/openid-configuration` is; required when enabled.'),
  SCOPES: list('Scopes asked for, separated by commas.', { default: 'openid,email,profile' }),
  CLAIMS: parsed(
    'JSON',
    'Where the members of an identity are found, as `{"full_name":"displayName","email":"upn"}`, beside the standard claims.',
    { default: '{}' },
    parseClaims,
  ),
  CLIENT_AUTHENTICATION: oneOf(['basic', 'post'], 'How the client shows its secret.', { default: 'basic' }),
} satisfies Variables

const NAMED = new RegExp(
  `^(?:AUTH_)?EXTERNAL_OIDC_([A-Z][A-Z0-9_]{0,29}?)_(?:${Object.keys(oidcVariables).join('|')})$`,
)

const prefixOf = (name: string) => `EXTERNAL_OIDC_${name.toUpperCase()}_`

/** The names of the providers that have a variable, in lower case as `provider` has them. */
export const oidcProviderNames = (...sources: Environment[]): string[] => {
  const names = sources.flatMap((source) => Object.keys(source)).map((name) => NAMED.exec(name)?.[1]?.toLowerCase())
  return [...new Set(names.filter((name) => name !== undefined))].sort()
}

export const oidcProviderVariables = (names: readonly string[]): Variables =>
  Object.assign({}, ...names.map((name) => prefixed(prefixOf(name), oidcVariables)))

export const oidcProviderSettings = (
  names: readonly string[],
  values: Record<string, unknown>,
): Record<string, OidcProviderSettings> =>
  Object.fromEntries(
    names.map((name) => {
      const setting = (member: string) => values[prefixOf(name) + member]
      return [
        name,
        {
          ...settingsBehind(prefixOf(name), values),
          issuer: (setting('ISSUER') as string | undefined) ?? '',
          scopes: setting('SCOPES') as string[],
          claims: setting('CLAIMS') as Record<string, string>,
          clientAuthentication: setting('CLIENT_AUTHENTICATION') as 'basic' | 'post',
        },
      ]
    }),
  )

/** Names that stand for something else already: the eighteen, and what identities of our own are called. */
const TAKEN: readonly string[] = [...EXTERNAL_PROVIDERS, 'email', 'phone', 'anonymous']

export const oidcProviderProblems = (names: readonly string[]): string[] =>
  names
    .filter((name) => TAKEN.includes(name))
    .map((name) => `AUTH_${prefixOf(name)}… takes a name that is in use: ${name}`)

export const oidcProviderGaps = (names: readonly string[], values: Record<string, unknown>): string[] =>
  names.flatMap((name) => missingSettings(prefixOf(name), ['CLIENT_ID', 'SECRET', 'REDIRECT_URI', 'ISSUER'], values))

function parseClaims(value: string): Record<string, string> {
  let claims: unknown
  try {
    claims = JSON.parse(value)
  } catch {
    throw new Error('must be a JSON object')
  }
  if (typeof claims !== 'object' || claims === null || Array.isArray(claims)) throw new Error('must be a JSON object')
  if (Object.values(claims).some((claim) => typeof claim !== 'string')) {
    throw new Error('must name one claim for each member')
  }
  return claims as Record<string, string>
}
