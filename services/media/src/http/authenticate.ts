import { timingSafeEqual } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { AdminActor } from '../core/audit/audit.ts'
import { allows } from '../core/tokens/scopes.ts'
import { hashToken, isWellFormed } from '../core/tokens/token-format.ts'
import { type ApiToken, findLiveToken, recordTokenUse } from '../core/tokens/tokens.store.ts'
import type { Scope } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { findBrowserSession, isOwnScript, requireOwnScript } from './browser-session.ts'
import { clientAddressOf } from './rate-limit.ts'

declare module 'fastify' {
  interface FastifyRequest {
    /** Null for a caller without a token, where that is allowed. */
    apiToken: ApiToken | null
    /** Address of the client, where it is known. */
    clientAddress: string | null
    /** Hash of the session that stands for the token; null for a token in a header. */
    sessionHash: Buffer | null
  }
  interface FastifyContextConfig {
    /** True for a GET that changes something. */
    changes?: boolean
  }
}

/** Precision of `last_used_at`. */
const NOTE_USE_EVERY_MS = 60_000

interface TokenOptions {
  /** Several: any of them opens the route, which then asks for the one that its body needs. */
  scope: Scope | readonly Scope[]
  anonymous?: (request: FastifyRequest) => boolean
  /** True where the answer holds the token itself, which a session of a browser does not have. */
  byHeaderAlone?: boolean
}

/**
 * Requires a token with `scope` (or `admin`) for all routes of `app`, in a header, else by the session of a browser.
 * Missing, unknown, expired and revoked tokens get the same answer. Without any a call passes where `anonymous` returns
 * true.
 */
export function requireToken(app: FastifyInstance, deps: Deps, options: TokenOptions): void {
  app.decorateRequest('apiToken', null)
  app.decorateRequest('clientAddress', null)
  app.decorateRequest('sessionHash', null)
  app.addHook('onRequest', async (request, reply) => {
    const presented = presentedToken(request)
    // The cookie of a browser is of no concern to pages that ask for no token.
    if (presented === undefined && !isOwnScript(request) && options.anonymous?.(request)) return
    const token =
      presented === undefined && !options.byHeaderAlone
        ? await tokenOfBrowser(deps, request, reply)
        : await findToken(deps, presented)
    if (!token && presented === undefined && options.anonymous?.(request)) return
    if (!token) throw apiError('token_missing_or_invalid')
    const scopes = [options.scope].flat()
    if (!scopes.some((scope) => allows(token, scope))) throw missingScope(scopes[0])
    useToken(deps, request, token)
  })
}

/** Answers the request with the rights of a token, which counts it. */
export function useToken(deps: Deps, request: FastifyRequest, token: ApiToken): void {
  request.apiToken = token
  request.clientAddress = clientAddressOf(request, deps.config.limits.header)
  recordUse(deps, token)
  deps.requestCounter.count(token.id)
}

/** Adds routes that require a token and count as reads. */
export const addTokenRoutes = (
  app: FastifyInstance,
  deps: Deps,
  options: TokenOptions,
  routes: FastifyPluginAsyncTypebox,
) =>
  app.register(async (part) => {
    requireToken(part, deps, options)
    part.addHook('onRequest', (request, reply) => deps.limits.count(request, reply, 'read'))
    await part.register(routes)
  })

export const missingScope = (scope: Scope | undefined) => apiError('insufficient_scope', { details: { scope } })

export function tokenOf(request: FastifyRequest): ApiToken {
  if (!request.apiToken) throw new Error('route outside the scope of requireToken')
  return request.apiToken
}

/** Actor of a route that needs the scope `admin`. */
export const adminOf = (request: FastifyRequest): AdminActor => ({
  ...{ origin: 'admin', tokenId: tokenOf(request).id, address: request.clientAddress },
})

/** Reads the token as it was sent, known or not. */
export function presentedToken({ headers }: Pick<FastifyRequest, 'headers'>): string | undefined {
  const [, bearer] = /^(?:bearer\s+|(?=mh_))(\S+)\s*$/i.exec(headers.authorization ?? '') ?? []
  // `Authorization: Basic` is meant for a proxy.
  const candidates = [headers.token, headers['gifs-api-key'], bearer]
  const presented = candidates.find((value) => value !== undefined)
  return Array.isArray(presented) ? presented.join() : presented
}

/** Finds the token of a browser's session. Its answers are for this browser alone. */
async function tokenOfBrowser(deps: Deps, request: FastifyRequest, reply: FastifyReply): Promise<ApiToken | undefined> {
  const { method, routeOptions } = request
  const isRead = (method === 'GET' || method === 'HEAD') && !routeOptions.config.changes
  const session = await findBrowserSession(deps, request, reply, isRead ? 'read' : 'change')
  if (!session) return undefined
  if (!isRead) requireOwnScript(request)
  reply.header('cache-control', 'private, no-store')
  request.sessionHash = session.hash
  return session.token
}

/** Looks the token up by its hash, which an attacker cannot steer: the time reveals nothing about existing tokens. */
export async function findToken(deps: Deps, presented = ''): Promise<ApiToken | undefined> {
  const hash = hashToken(presented)
  const { bootstrapToken } = deps.config
  const isBootstrap = bootstrapToken !== undefined && timingSafeEqual(hash, hashToken(bootstrapToken))
  return isBootstrap || isWellFormed(presented) ? findLiveToken(deps.db, hash, deps.now()) : undefined
}

/** Not awaited: the caller gains nothing by it, and its failure does not fail the call. */
function recordUse({ db, log, now }: Deps, token: ApiToken): void {
  const at = now()
  const staleBefore = new Date(at.getTime() - NOTE_USE_EVERY_MS)
  if (token.last_used_at && token.last_used_at >= staleBefore) return
  recordTokenUse(db, token.id, at, staleBefore).catch((err) => log.warn({ err }, 'token use not recorded'))
}
