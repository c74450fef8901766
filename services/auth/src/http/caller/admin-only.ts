import { ApiError } from '@services/common/errors'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { JWTPayload } from 'jose'
import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import type { Actor, AuditDeps } from '../../core/audit/audit.ts'
import { recordRefusal, unknownActor } from '../../core/audit/sign-in-attempt.ts'
import { hasProvenSecondFactor } from '../../core/factors/assurance.ts'
import type { SigningKeys } from '../../core/keys/signing-keys.ts'
import { findOAuthClient } from '../../core/oauth-server/oauth-clients.store.ts'
import { whyEnded } from '../../core/sessions/session-limits.ts'
import { findSessionWithUser } from '../../core/sessions/sessions.store.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import type { DB } from '../../db/tables.ts'
import { NIL_UUID, UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import { limitKeyOf } from '../limits/client.ts'
import type { Limits } from '../limits/rate-limit.ts'
import { hasClient, sessionIdOf, verifyBearer } from './authenticate.ts'
import { bindingScopes, isOfClient, requireScope } from './client-token.ts'

export interface AdminDeps {
  db: Kysely<DB>
  keys: SigningKeys
  now: () => Date
  config: Pick<Config, 'jwt' | 'limits' | 'mfa' | 'oauthServer' | 'server' | 'sessions'>
}

type DoorDeps = AdminDeps &
  AuditDeps & {
    limits: Pick<Limits, 'isRefusalStored'>
  }

declare module 'fastify' {
  interface FastifyRequest {
    admin: ActingAdmin | null
  }
}

/** Administrator or machine. `scopes` bind a token of a client; without them it has all rights of an administrator. */
export interface ActingAdmin extends Actor {
  scopes?: readonly string[] | undefined
}

/** Finds the administrator of a request by a page of the console; undefined for any other. Records a refusal itself. */
export type FindConsoleAdmin = (request: FastifyRequest, reply: FastifyReply) => Promise<Actor | undefined>

/**
 * Requires an admin's token for all routes of the scope, or the session of the console; `adminOf(request)` is the
 * acting admin. Checks follow the order of contract/auth-core.md 3.4: a token with a session needs it alive, one made
 * from the secret has none.
 */
export function requireAdmin(app: FastifyInstance, deps: DoorDeps, findConsoleAdmin?: FindConsoleAdmin): void {
  app.decorateRequest('admin', null)
  app.addHook('onRequest', async (request, reply) => {
    request.admin = (await findConsoleAdmin?.(request, reply)) ?? null
    if (request.admin) return
    let claims: JWTPayload | undefined
    try {
      claims = await verifyBearer(request, deps)
      request.admin = await adminOfToken(deps, request, claims)
    } catch (error) {
      await recordRefusedAdmin(deps, request, claims?.sub, error)
      throw error
    }
  })
}

async function adminOfToken(deps: AdminDeps, request: FastifyRequest, claims: JWTPayload): Promise<ActingAdmin> {
  if (isOfClient(claims) && !sessionIdOf(claims)) return machineOf(deps, request, claims)
  const userId = await checkSession(deps, claims)
  const role = typeof claims.role === 'string' ? claims.role : ''
  if (!deps.config.jwt.adminRoles.includes(role)) throw apiError('not_admin')
  const scopes = bindingScopes(deps, request, claims)
  return { id: userId ?? NIL_UUID, email: role, phone: null, user_metadata: {}, scopes }
}

/** Finds the client that acts for itself. Its registration binds too: an administrator may have narrowed it. */
async function machineOf(deps: AdminDeps, request: FastifyRequest, claims: JWTPayload): Promise<ActingAdmin> {
  const { sub, client_id: clientId } = claims
  const client = sub && sub === clientId && UUID.test(sub) ? await findOAuthClient(deps.db, sub) : undefined
  if (!client?.grant_types.includes('client_credentials')) throw apiError('bad_jwt')
  const registered = client.scope?.split(' ') ?? []
  const scopes = bindingScopes(deps, request, claims)?.filter((scope) => registered.includes(scope)) ?? []
  requireScope(request, scopes)
  return { id: client.id, email: client.client_name ?? client.id, phone: null, user_metadata: {}, scopes }
}

/**
 * Records a refused token or cookie, under its user if it is a valid one of ours. A request without either is no
 * attempt.
 */
export async function recordRefusedAdmin(
  deps: DoorDeps,
  request: FastifyRequest,
  userId: string | undefined,
  error: unknown,
): Promise<void> {
  if (!(error instanceof ApiError) || error.code === 'no_authorization') return
  const actor = { ...unknownActor(''), ...(userId && UUID.test(userId) && { id: userId }) }
  const client = limitKeyOf(request, deps.config)
  await recordRefusal(deps, request.log, { method: 'admin', actor, client }, error)
}

/**
 * Acting admin for the audit log: a signed-in user or a machine by id; a token made from the secret has only its role.
 */
export function adminOf(request: FastifyRequest): ActingAdmin {
  if (!request.admin) throw new Error('route outside the scope of requireAdmin')
  return request.admin
}

/** Whether a public request comes from an admin, who needs no captcha. */
export async function isAdminRequest(request: FastifyRequest, deps: AdminDeps): Promise<boolean> {
  if (!request.headers.authorization) return false
  const claims = await verifyBearer(request, deps).catch(() => undefined)
  if (typeof claims?.role !== 'string' || !deps.config.jwt.adminRoles.includes(claims.role)) return false
  try {
    await checkSession(deps, claims)
    return true
  } catch (error) {
    if (error instanceof ApiError) return false
    throw error
  }
}

/** Returns the user of the session; undefined for a token without one. */
async function checkSession(deps: AdminDeps, claims: JWTPayload): Promise<string | undefined> {
  const sessionId = sessionIdOf(claims)
  if (!sessionId) return undefined
  if (!claims.sub || !UUID.test(claims.sub)) throw apiError('bad_jwt')
  const session = await findSessionWithUser(deps.db, sessionId, deps.config.sessions)
  const isOfSession = session?.user_id === claims.sub && hasClient(session) === isOfClient(claims)
  if (!session || !isOfSession) throw apiError('session_not_found')
  if (isBanned(session, deps.now())) throw apiError('user_banned')
  // A token outlives the role it was issued with.
  if (session.role !== claims.role) throw apiError('not_admin')
  if (whyEnded(session, deps.config.sessions, deps.now())) throw apiError('session_expired', { status: 403 })
  if (deps.config.mfa.requiredFor !== 'nobody' && !hasProvenSecondFactor(session)) throw apiError('insufficient_aal')
  return claims.sub
}
