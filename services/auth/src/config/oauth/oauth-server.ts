// The OAuth server: other applications sign in with this service (contract/auth-oauth-server.md).
import { boolean, parsed, type Values, type Variables } from '@services/common/config/variables'
import { MAX_SCOPES, type OAuthScope, readScope } from '../../core/oauth-server/oauth-scopes.ts'
import { resourceFault } from '../../core/oauth-server/resources.ts'

export const oauthServerVariables = {
  OAUTH_SERVER_ENABLED: boolean('Administrators register clients and scopes of the OAuth server.', {
    default: 'false',
  }),
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
} satisfies Variables

export const oauthServerSettings = (values: Values<typeof oauthServerVariables>) => ({
  enabled: values.OAUTH_SERVER_ENABLED,
  scopes: values.OAUTH_SERVER_SCOPES,
  /** Values of `aud` in tokens; the token endpoint and authorize take no others. */
  resources: values.OAUTH_SERVER_RESOURCES,
})

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
