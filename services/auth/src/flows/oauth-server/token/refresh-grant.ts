import { touchClient } from '../../../core/oauth-server/oauth-clients.store.ts'
import { permittedScopes } from '../../../core/oauth-server/requested-scopes.ts'
import { findRightsOfSession } from '../../../core/oauth-server/tokens/client-sessions.store.ts'
import { issueClientTokens, type TokenAnswer } from '../../../core/oauth-server/tokens/issue-client-tokens.ts'
import { parseRefreshToken } from '../../../core/sessions/refresh-token.ts'
import { refreshAs } from '../../../core/sessions/rotate-session.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { type GrantRequest, narrowedResources, narrowedScopes } from './grant.ts'

export interface RefreshFields {
  refresh_token?: string | undefined
  scopes: readonly string[]
  resources: readonly string[]
}

/** Refreshes a client's session, as sessions are; a request may take fewer scopes and resources for its token. */
export async function refreshForClient(request: GrantRequest, fields: RefreshFields): Promise<TokenAnswer> {
  const { deps, log, client, origin, thumbprint } = request
  const { refresh_token: text, ...narrowing } = fields
  if (!text) throw oauthError('invalid_request', { message: 'refresh_token is required' })
  await requireGranted(request, text, narrowing)
  const presented = { text, userAgent: origin.userAgent, ip: origin.ip, oauthClientId: client.id, thumbprint }
  const answer = await refreshAs(deps, log, presented, (asking, db, { grant, user, ...session }) => {
    const { scopes: granted, resources } = grant ?? { scopes: [], resources: [] }
    // An administrator may have taken some from the client since.
    const permitted = permittedScopes(client)
    const scopes = granted.filter((scope) => permitted.includes(scope))
    return issueClientTokens(asking, db, {
      ...{ user, session, client, granted: scopes, thumbprint, method: 'token_refresh' },
      scopes: narrowedScopes(scopes, narrowing.scopes),
      resources: narrowedResources(resources, narrowing.resources),
    })
  })
  await touchClient(deps.db, client, deps.now())
  return answer
}

/** Refuses wider rights before the token is used up. Most requests name none, and read nothing here. */
async function requireGranted(
  { deps }: GrantRequest,
  text: string,
  { scopes, resources }: Omit<RefreshFields, 'refresh_token'>,
): Promise<void> {
  if (scopes.length === 0 && resources.length === 0) return
  const token = parseRefreshToken(deps.refreshTokenKey, text)
  const granted = token && (await findRightsOfSession(deps.db, token.sessionId))
  if (!granted) return
  narrowedScopes(granted.scopes, scopes)
  narrowedResources(granted.resources, resources)
}
