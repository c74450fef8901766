// The OAuth server: other applications sign in with this service (contract/auth-oauth-server.md).
import { boolean, duration, parsed, type Values, type Variables } from '@services/common/config/variables'
import { isScopeName, MAX_SCOPES, type OAuthScope, readScope } from '../../core/oauth-server/oauth-scopes.ts'
import { LOOPBACK } from '../../core/oauth-server/redirect-uris.ts'
import { resourceFault } from '../../core/oauth-server/resources.ts'
import type { jwtVariables } from '../jwt.ts'
import type { pageVariables } from '../pages/page-variables.ts'
import type { serverVariables } from '../server.ts'

export const oauthServerVariables = {
  OAUTH_SERVER_ENABLED: boolean('Applications of others sign in with this service (OAuth 2.1, OpenID Connect).', {
    default: 'false',
  }),
  OAUTH_SERVER_AUTHORIZATION_PATH: parsed(
    'path',
    'Path of your own consent page on SITE_URL; unset: the hosted page (HOSTED_PAGES_ENABLED).',
    {},
    parsePath,
  ),
  OAUTH_SERVER_AUTHORIZATION_TTL: duration('Time in which a user can answer a request of an application.', {
    default: '10m',
    positive: true,
    max: '1h',
  }),
  OAUTH_SERVER_DEFAULT_SCOPE: parsed(
    'list',
    'Scopes of requests that name none, separated by spaces, beside the scopes with `default`.',
    { default: 'email' },
    parseScopeNames,
  ),
  OAUTH_SERVER_SCOPES: parsed(
    'JSON',
    'List of scopes for other services, such as `[{"name":"reports:read","description":"Read reports"}]`; `descriptions` by language, `claims` and `default` are optional.',
    { default: '[]' },
    parseScopes,
  ),
  OAUTH_SERVER_RESOURCES: parsed(
    'list',
    'Resources (RFC 8707) that clients may ask tokens for, such as `https://api.example.com`; `*`: any.',
    { default: '' },
    parseResources,
  ),
  OAUTH_SERVER_FULL_USER_TOKENS: boolean(
    'A token of a client counts as one of the user itself, whatever its scopes are, as at supabase/auth.',
    { default: 'false' },
  ),
} satisfies Variables

export const oauthServerSettings = (values: Values<typeof oauthServerVariables>) => ({
  enabled: values.OAUTH_SERVER_ENABLED,
  /** undefined: the hosted page. */
  consentPath: values.OAUTH_SERVER_AUTHORIZATION_PATH,
  requestSeconds: values.OAUTH_SERVER_AUTHORIZATION_TTL,
  defaultScopes: values.OAUTH_SERVER_DEFAULT_SCOPE,
  scopes: values.OAUTH_SERVER_SCOPES,
  /** Values of `aud` in tokens; the token endpoint and authorize take no others. */
  resources: values.OAUTH_SERVER_RESOURCES,
  fullUserTokens: values.OAUTH_SERVER_FULL_USER_TOKENS,
})

type Checked = typeof oauthServerVariables &
  Pick<typeof serverVariables, 'API_EXTERNAL_URL'> &
  Pick<typeof jwtVariables, 'JWT_ISSUER'> &
  Pick<typeof pageVariables, 'HOSTED_PAGES_ENABLED'>

/** Clients find the endpoints by the issuer, and compare it with the one in answers and tokens. */
export function oauthServerProblems(values: Values<Checked>): string[] {
  if (!values.OAUTH_SERVER_ENABLED) return []
  const { API_EXTERNAL_URL: externalUrl, JWT_ISSUER: issuer = externalUrl } = values
  const { protocol, hostname } = new URL(externalUrl)
  const isSafe = protocol === 'https:' || LOOPBACK.includes(hostname)
  const hasPage = values.OAUTH_SERVER_AUTHORIZATION_PATH !== undefined || values.HOSTED_PAGES_ENABLED
  return [
    ...(isSafe ? [] : ['AUTH_API_EXTERNAL_URL must be https for AUTH_OAUTH_SERVER_ENABLED']),
    ...(issuer === externalUrl ? [] : ['AUTH_JWT_ISSUER must be AUTH_API_EXTERNAL_URL for AUTH_OAUTH_SERVER_ENABLED']),
    ...(hasPage
      ? []
      : ['AUTH_OAUTH_SERVER_ENABLED needs AUTH_OAUTH_SERVER_AUTHORIZATION_PATH or AUTH_HOSTED_PAGES_ENABLED']),
  ]
}

function parsePath(value: string): string {
  if (!/^\/[^\s?#\\]*$/.test(value) || value.startsWith('//')) {
    throw new Error('must begin with one slash, without a query')
  }
  return value
}

function parseScopeNames(value: string): readonly string[] {
  const names = value.split(' ').filter(Boolean)
  if (!names.every(isScopeName)) throw new Error('must be names of scopes, separated by spaces')
  return names
}

function parseResources(value: string): 'any' | readonly string[] {
  if (value.trim() === '*') return 'any'
  const resources = value
    .split(',')
    .map((item) => item.trim())
    .filter(Boolean)
  for (const [index, resource] of resources.entries()) {
    const fault = resourceFault(resource)
    if (fault) throw new Error(`has a wrong resource at position ${index + 1}: it ${fault}`)
  }
  return resources
}

/** Parses a JSON list of scopes; each fault names the position of its scope, from 1. */
function parseScopes(value: string): readonly OAuthScope[] {
  const list = jsonList(value)
  if (list.length > MAX_SCOPES) throw new Error(`must have at most ${MAX_SCOPES} scopes`)
  const scopes = list.map((given, index) => {
    try {
      return readScope(Object(given))
    } catch (error) {
      throw new Error(`has a wrong scope at position ${index + 1}: ${(error as Error).message}`)
    }
  })
  if (new Set(scopes.map(({ name }) => name)).size < scopes.length) throw new Error('must not name a scope twice')
  return scopes
}

function jsonList(value: string): unknown[] {
  let list: unknown
  try {
    list = JSON.parse(value)
  } catch {}
  if (!Array.isArray(list)) throw new Error('must be a JSON list')
  return list
}
