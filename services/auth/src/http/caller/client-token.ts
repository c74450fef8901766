// Tokens of clients at the doors of this service (contract/auth-oauth-server.md 14). The rule: a token that names a
// client is never one of the account itself, whatever the settings are. Tests: here and core/oauth-server/scopes/.
import type { FastifyRequest } from 'fastify'
import type { JWTPayload } from 'jose'
import type { Config } from '../../config.ts'
import { recordOrigin } from '../../core/audit/audit.ts'
import { resourceFault } from '../../core/oauth-server/resources.ts'
import { scopesOpening } from '../../core/oauth-server/scopes/opened-routes.ts'
import { apiError } from '../../errors.ts'
import { clientOf } from '../limits/client.ts'

export interface ClientTokenDeps {
  config: Pick<Config, 'jwt' | 'limits' | 'oauthServer' | 'server'>
}

/** Whether a token was issued to a client. */
export const isOfClient = ({ client_id: clientId }: JWTPayload): boolean => clientId !== undefined

const scopesIn = ({ scope }: JWTPayload): readonly string[] => (typeof scope === 'string' ? scope.split(' ') : [])

/**
 * Refuses a client's token at a route that its scopes do not open, and one for another resource. Audit entries of the
 * request name the client.
 */
export function requireOpened({ config }: ClientTokenDeps, request: FastifyRequest, claims: JWTPayload): void {
  recordOrigin(request.log, () => ({ ...clientOf(request, config), clientId: String(claims.client_id) }))
  if (pathOf(request) !== USERINFO && isForOthers(config, claims)) {
    throw invalidToken('The audience of this token is another service')
  }
  if (isFull(config, request, claims)) return
  requireScope(request, config.oauthServer.enabled ? scopesIn(claims) : [])
}

/** Throws insufficient_scope (RFC 6750, section 3.1) unless one of the scopes opens the route. */
export function requireScope(request: FastifyRequest, scopes: readonly string[]): void {
  const opening = scopesOpening(request.method, pathOf(request))
  if (scopes.some((scope) => opening.includes(scope))) return
  throw apiError('insufficient_scope', opening.length > 0 ? { details: { scope: opening.join(' ') } } : {})
}

/** Returns the scopes that bind a caller; undefined for a token of the account itself, or one that counts as such. */
export const bindingScopes = (
  { config }: ClientTokenDeps,
  request: FastifyRequest,
  claims: JWTPayload,
): readonly string[] | undefined =>
  isOfClient(claims) && !isFull(config, request, claims) ? scopesIn(claims) : undefined

const USERINFO = '/oauth/userinfo'

const pathOf = ({ routeOptions }: FastifyRequest): string => routeOptions.url ?? ''

const invalidToken = (message: string) => apiError('bad_jwt', { status: 401, message })

/** The OAuth server's own routes always bind: a client must not agree to another one. */
const isFull = ({ oauthServer }: ClientTokenDeps['config'], request: FastifyRequest, claims: JWTPayload): boolean =>
  oauthServer.enabled &&
  oauthServer.fullUserTokens &&
  Boolean(claims.session_id) &&
  !/^(\/user)?\/oauth\//.test(pathOf(request))

/** Whether the audience holds a resource. Resources are URIs, which an audience of this service may be too. */
const isForOthers = ({ jwt }: ClientTokenDeps['config'], { aud = [] }: JWTPayload): boolean =>
  [aud].flat().some((each) => !jwt.audiences.includes(each) && resourceFault(each) === undefined)
