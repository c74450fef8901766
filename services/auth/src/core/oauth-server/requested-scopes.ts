import type { OAuthClient } from '../../db/tables.ts'
import { oauthError } from '../../oauth-errors.ts'
import type { SigningKeys } from '../keys/signing-keys.ts'
import { STANDARD_SCOPES, USUAL_SCOPES } from './oauth-scopes.ts'
import { listOwnScopes, type ScopeDeps } from './own-scopes.ts'

const MAX_SCOPE = 4096

/** Names the scopes that a client may ask for. */
export const permittedScopes = ({ scope }: Pick<OAuthClient, 'scope'>): readonly string[] =>
  scope?.split(' ') ?? USUAL_SCOPES

/**
 * Returns the scopes of a request for tokens, each once: known ones within the client's registration. A request without
 * any gets the default ones among these. Throws invalid_scope.
 */
export async function requestedScopes(
  deps: ScopeDeps & { keys: Pick<SigningKeys, 'alg'> },
  client: Pick<OAuthClient, 'scope'>,
  scope: string | undefined,
): Promise<string[]> {
  if (scope !== undefined && scope.length > MAX_SCOPE) throw refused(`scope must have at most ${MAX_SCOPE} characters`)
  const permitted = permittedScopes(client)
  const asked = [...new Set(scope?.split(' ').filter(Boolean))]
  const needsOwn = asked.length === 0 || asked.some((name) => !STANDARD_SCOPES.includes(name))
  const own = needsOwn ? await listOwnScopes(deps) : []
  const isKnown = (name: string) => STANDARD_SCOPES.includes(name) || own.some((scope) => scope.name === name)
  const byDefault = () => {
    const names = [
      ...deps.config.oauthServer.defaultScopes,
      ...own.filter((each) => each.default).map(({ name }) => name),
    ]
    return [...new Set(names)].filter((name) => permitted.includes(name) && isKnown(name))
  }
  const scopes = asked.length > 0 ? asked : byDefault()
  if (scopes.length === 0) throw refused('scope is required for this client')
  for (const name of scopes) {
    if (!isKnown(name)) throw refused(`unsupported scope: ${name.slice(0, 64)}`)
    if (!permitted.includes(name)) throw refused(`this client may not ask for the scope ${name.slice(0, 64)}`)
  }
  // An id_token is verified with a published key.
  if (scopes.includes('openid') && deps.keys.alg === 'HS256') throw refused('openid needs a key in AUTH_JWT_KEYS')
  return scopes
}

const refused = (message: string) => oauthError('invalid_scope', { message })
