import { timingSafeEqual } from 'node:crypto'
import type { Logger } from '@services/common/logger'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { Kysely } from 'kysely'
import { hashToken, isWellFormed } from '../core/tokens/api-token.ts'
import type { RequestCounts } from '../core/tokens/request-counts.ts'
import { type ApiToken, findLiveToken, noteTokenUse } from '../core/tokens/tokens.store.ts'
import type { DB, Scope } from '../db/tables.ts'
import { apiError } from '../errors.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Null for a caller without a token, where that is allowed. */
    apiToken: ApiToken | null
  }
}

export interface AuthenticateDeps {
  db: Kysely<DB>
  log: Logger
  now: () => Date
  config: { bootstrapToken: string | undefined }
  requests: RequestCounts
}

/** How exact `last_used_at` is. */
const NOTE_USE_EVERY_MS = 60_000

/**
 * Everything in this scope needs a token with `scope` (or `admin`): header `Token`, or one of its aliases. Missing,
 * unknown, expired and revoked are one answer. With `anonymous` a call without any token header passes, where it is
 * true for the request.
 */
export function requireToken(
  app: FastifyInstance,
  deps: AuthenticateDeps,
  options: { scope: Scope; anonymous?: (request: FastifyRequest) => boolean },
): void {
  app.decorateRequest('apiToken', null)
  app.addHook('onRequest', async (request, reply) => {
    const presented = presentedToken(request)
    if (presented === undefined && options.anonymous?.(request)) return
    const token = await findToken(deps, presented)
    if (!token) throw refused(reply)
    if (!allows(token, options.scope)) {
      throw apiError('insufficient_scope', { details: { scope: options.scope } })
    }
    request.apiToken = token
    noteUse(deps, token)
    deps.requests.count(token.id)
  })
}

export function tokenOf(request: FastifyRequest): ApiToken {
  if (!request.apiToken) throw new Error('route outside the scope of requireToken')
  return request.apiToken
}

export const allows = (token: ApiToken, scope: Scope): boolean =>
  token.scopes.includes(scope) || token.scopes.includes('admin')

function presentedToken({ headers }: FastifyRequest): string | undefined {
  const [, bearer] = /^(?:bearer\s+|(?=mh_))(\S+)\s*$/i.exec(headers.authorization ?? '') ?? []
  // `Authorization: Basic` is between the caller and a proxy.
  const candidates = [headers.token, headers['gifs-api-key'], bearer]
  const presented = candidates.find((value) => value !== undefined)
  return Array.isArray(presented) ? presented.join() : presented
}

/** The lookup is by the hash, which an attacker cannot steer: its time tells nothing about tokens that exist. */
async function findToken(deps: AuthenticateDeps, presented = ''): Promise<ApiToken | undefined> {
  const hash = hashToken(presented)
  const { bootstrapToken } = deps.config
  const isBootstrap = bootstrapToken !== undefined && timingSafeEqual(hash, hashToken(bootstrapToken))
  return isBootstrap || isWellFormed(presented) ? findLiveToken(deps.db, hash, deps.now()) : undefined
}

function refused(reply: FastifyReply) {
  reply.header('www-authenticate', 'Token realm="media"')
  return apiError('token_missing_or_invalid')
}

/** Not waited for: the caller gains nothing by it, and its failure is no failure of the call. */
function noteUse({ db, log, now }: AuthenticateDeps, token: ApiToken): void {
  const at = now()
  const staleBefore = new Date(at.getTime() - NOTE_USE_EVERY_MS)
  if (token.last_used_at && token.last_used_at >= staleBefore) return
  noteTokenUse(db, token.id, at, staleBefore).catch((err) => log.warn({ err }, 'use of a token could not be noted'))
}
