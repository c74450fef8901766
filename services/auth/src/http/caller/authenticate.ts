// The caller of a request: its token, captcha and rights.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { JWTPayload } from 'jose'
import type { Kysely } from 'kysely'
import type { SigningKeys } from '../../core/keys/signing-keys.ts'
import { BY_PAGES } from '../../core/sessions/access-token.ts'
import type { Caller, LiveCaller } from '../../core/sessions/caller.ts'
import type { FindCaller } from '../../core/sessions/find-callers.store.ts'
import { type SessionLimits, whyEnded } from '../../core/sessions/session-limits.ts'
import { isBanned } from '../../core/users/is-banned.ts'
import type { User } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'
import { NIL_UUID, UUID } from '../../db/uuid.ts'
import { apiError } from '../../errors.ts'
import { bindingScopes, type ClientTokenDeps, isOfClient, requireOpened } from './client-token.ts'
import { requireBoundKey } from './proven-key.ts'

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null
  }
}

interface VerifyDeps extends ClientTokenDeps {
  db: Kysely<DB>
  keys: SigningKeys
  now: () => Date
}

interface UserDeps extends VerifyDeps {
  findCaller: FindCaller
  config: VerifyDeps['config'] & { sessions: SessionLimits }
}

/**
 * Requires a user's access token for all routes of the scope; the caller is `callerOf(request)`. A token whose session
 * has ended passes without a session (design.md 5.3), unless it is older than the proof of the account's address. That
 * of a client never does.
 */
export function requireUser(app: FastifyInstance, deps: UserDeps): void {
  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (request) => {
    request.caller = await authenticate(request, deps)
  })
}

/** Finds the caller by the request's token. Order of checks and statuses: contract/auth-core.md 3.1 to 3.3. */
export async function authenticate(request: FastifyRequest, deps: UserDeps): Promise<Caller> {
  const claims = await verifyBearer(request, deps)
  if (!claims.sub) throw apiError('bad_jwt', { message: 'invalid claim: missing sub claim' })
  if (!UUID.test(claims.sub)) {
    throw apiError('bad_jwt', { status: 400, message: 'invalid claim: sub claim must be a UUID' })
  }
  const sessionId = sessionIdOf(claims)
  const caller = await deps.findCaller({ userId: claims.sub, sessionId })
  if (!caller) throw apiError('user_not_found')
  const { user, session } = caller
  if (isBanned(user, deps.now())) throw apiError('user_banned')
  const isLive = session && !whyEnded(session, deps.config.sessions, deps.now())
  if (sessionId && !isLive && isFromBeforeProof(claims, user)) throw apiError('session_not_found')
  if (isOfClient(claims)) {
    if (!isLive || !hasClient(session)) throw apiError('session_not_found')
  } else if (hasClient(session)) throw apiError('insufficient_scope')
  return {
    user,
    session: isLive ? session : undefined,
    hadSession: sessionId !== undefined,
    isByPages: claims[BY_PAGES] === true,
    audience: [claims.aud].flat()[0] ?? '',
    scopes: bindingScopes(deps, request, claims),
  }
}

/** Whether a session was given to a client of the OAuth server. Its tokens name the client, and no others do. */
export const hasClient = (session: { oauth_client_id: string | null } | undefined): boolean =>
  session !== undefined && session.oauth_client_id !== null

/** Whether the token predates the address's proof: its registrant may be a stranger to the owner. */
const isFromBeforeProof = ({ iat }: JWTPayload, { confirmed_at: provenAt }: User): boolean =>
  iat !== undefined && provenAt !== null && iat < Math.floor(provenAt.getTime() / 1000)

export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error('route outside the scope of requireUser')
  return request.caller
}

/** Returns the caller with a live session, which every change of an account requires: a token outlives its session. */
export function requireLiveSession(request: FastifyRequest): LiveCaller {
  const caller = callerOf(request)
  if (!caller.session) throw apiError('session_not_found')
  return { ...caller, session: caller.session }
}

/** Verifies the request's token; throws no_authorization, bad_jwt or, for a client's token, insufficient_scope. */
export async function verifyBearer(request: FastifyRequest, deps: VerifyDeps): Promise<JWTPayload> {
  const { scheme, token } = tokenOf(request)
  const claims = await deps.keys.verify(token, deps.now())
  if (!claims) throw apiError('bad_jwt')
  if (claims.cnf !== undefined || scheme !== 'bearer') await requireBoundKey(deps, request, claims, token)
  if (isOfClient(claims)) requireOpened(deps, request, claims)
  return claims
}

/** Session of a token; undefined for tokens made by hand. Throws bad_jwt for a malformed id. */
export function sessionIdOf({ session_id: sessionId }: JWTPayload): string | undefined {
  if (!sessionId || sessionId === NIL_UUID) return undefined
  if (typeof sessionId !== 'string' || !UUID.test(sessionId)) {
    throw apiError('bad_jwt', { message: 'invalid claim: session_id claim must be a UUID' })
  }
  return sessionId
}

function tokenOf(request: FastifyRequest): { scheme: string; token: string } {
  const [, scheme = '', token] = /^(bearer|dpop) (\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  if (!token) throw apiError('no_authorization')
  return { scheme: scheme.toLowerCase(), token }
}

/** Audience of a public request (contract/auth-core.md 3.5); other services trust it as `aud`. */
export function requestAudience(request: FastifyRequest, jwt: { audience: string; audiences: string[] }): string {
  const audience = adminAudience(request, jwt)
  if (jwt.audiences.includes(audience)) return audience
  throw apiError('validation_failed', { message: 'X-JWT-AUD must name one of the audiences of this service' })
}

/** Audience of an admin's request, which may be any. */
export const adminAudience = (request: FastifyRequest, jwt: { audience: string }): string =>
  String(request.headers['x-jwt-aud'] || jwt.audience).slice(0, 255)
