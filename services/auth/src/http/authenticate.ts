import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import type { Aal, AmrEntry, DB } from '../db/tables.ts'
import { apiError } from '../errors.ts'
import type { SigningKeys } from '../jwks/signing-keys.ts'
import { findCaller } from '../sessions/sessions.store.ts'
import type { User } from '../users/users.store.ts'

export interface Caller {
  user: User
  /** First audience of the token. */
  audience: string
  /** False for a token made by hand from the secret. */
  hadSession: boolean
  /** Undefined once the session has ended; the token itself stays valid until it expires. */
  session: { id: string; aal: Aal; amr: AmrEntry[] } | undefined
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller | null
  }
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i
const NIL_UUID = '00000000-0000-0000-0000-000000000000'

/**
 * Everything in this scope needs a user's access token; the caller is `callerOf(request)`. Order of checks and their
 * statuses: contract/auth-core.md 3.1 to 3.3. A token whose session ended still passes here (design.md 5.3).
 */
export function requireUser(app: FastifyInstance, deps: { db: Kysely<DB>; keys: SigningKeys; now: () => Date }): void {
  app.decorateRequest('caller', null)
  app.addHook('onRequest', async (request) => {
    const claims = await deps.keys.verify(bearerOf(request), deps.now())
    if (!claims?.sub) throw apiError('bad_jwt')
    if (!UUID.test(claims.sub)) throw apiError('bad_jwt', { status: 400 })
    const sessionId = claims.session_id || undefined
    if (sessionId !== undefined && !(typeof sessionId === 'string' && UUID.test(sessionId))) throw apiError('bad_jwt')
    const liveId = sessionId === NIL_UUID ? undefined : sessionId
    const caller = await findCaller(deps.db, claims.sub, liveId)
    if (!caller) throw apiError('user_not_found')
    if (caller.user.banned_until && caller.user.banned_until > deps.now()) throw apiError('user_banned')
    request.caller = { ...caller, hadSession: liveId !== undefined, audience: [claims.aud].flat()[0] ?? '' }
  })
}

export function callerOf(request: FastifyRequest): Caller {
  if (!request.caller) throw new Error('route outside the scope of requireUser')
  return request.caller
}

/** For everything that changes an account: a token outlives its session, the right to change things does not. */
export function requireLiveSession(request: FastifyRequest): Caller & { session: NonNullable<Caller['session']> } {
  const caller = callerOf(request)
  if (!caller.session) throw apiError('session_not_found')
  return { ...caller, session: caller.session }
}

function bearerOf(request: FastifyRequest): string {
  const [, token] = /^bearer (\S+)$/i.exec(request.headers.authorization ?? '') ?? []
  if (!token) throw apiError('no_authorization')
  return token
}

/** The audience of a public request (contract/auth-core.md 3.5). */
export const requestAudience = (request: FastifyRequest, fallback: string): string =>
  String(request.headers['x-jwt-aud'] || fallback).slice(0, 255)
