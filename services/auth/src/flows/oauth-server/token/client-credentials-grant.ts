import { touchClient } from '../../../core/oauth-server/oauth-clients.store.ts'
import { STANDARD_SCOPES } from '../../../core/oauth-server/oauth-scopes.ts'
import { listOwnScopes } from '../../../core/oauth-server/own-scopes.ts'
import { resourceFault } from '../../../core/oauth-server/resources.ts'
import { machineClaims } from '../../../core/oauth-server/tokens/client-claims.ts'
import { type TokenAnswer, tokenType } from '../../../core/oauth-server/tokens/issue-client-tokens.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { type GrantRequest, narrowedScopes } from './grant.ts'

export interface MachineFields {
  scopes: readonly string[]
  resources: readonly string[]
}

/** Scopes about a user, of whom a machine's token has none. */
const OF_USERS = ['openid', 'email', 'phone', 'profile', 'offline_access', 'account:read', 'account:write']

/** Issues a token to a client for itself (RFC 6749, section 4.4): without a user, a session and a refresh token. */
export async function issueMachineToken(request: GrantRequest, fields: MachineFields): Promise<TokenAnswer> {
  const { deps, client, thumbprint } = request
  const { resources } = fields
  requirePermitted(request, resources)
  const existing = [...STANDARD_SCOPES, ...(await listOwnScopes(deps)).map(({ name }) => name)]
  const registered = (client.scope ?? '').split(' ')
  const permitted = registered.filter((scope) => existing.includes(scope) && !OF_USERS.includes(scope))
  const scopes = narrowedScopes(permitted, fields.scopes)
  const claims = machineClaims(deps, client, { scopes, resources, thumbprint }, deps.config.jwt.audience)
  const accessToken = await deps.keys.sign(claims)
  await touchClient(deps.db, client, deps.now())
  const answer = { token_type: tokenType(thumbprint), expires_in: claims.exp - claims.iat, scope: claims.scope }
  return { access_token: accessToken, ...answer }
}

/** Refuses resources that the operator has not listed. */
function requirePermitted({ deps }: GrantRequest, resources: readonly string[]): void {
  const { resources: listed } = deps.config.oauthServer
  const isPermitted = (resource: string) =>
    listed === 'any' ? resourceFault(resource) === undefined : listed.includes(resource)
  if (!resources.every(isPermitted)) throw oauthError('invalid_target')
}
