// Visitors of pages who are signed in by the session of their browser. Its rules: http/browser-session.ts; the frame of
// their pages: owner-page.http.ts.
import { ApiError } from '@services/common/errors'
import { html } from '@services/common/html'
import { explainFailure } from '@services/common/http/error-handler'
import { notice } from '@services/common/pages/notices'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { allows } from '../../core/tokens/scopes.ts'
import type { Scope } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError, ERRORS_PATH } from '../../errors.ts'
import { acceptsHtml } from '../../http/accepts-html.ts'
import { useToken } from '../../http/authenticate.ts'
import { type BrowserSession, findBrowserSession, type Purpose } from '../../http/browser-session.ts'
import { errorAnswers } from '../../http/error-bodies.ts'
import { failureWords } from '../../words/failures.ts'
import { frameWords } from '../../words/frame.ts'
import { languageOf } from '../../words/language.ts'
import { sendSignedInPage, type Visitor } from './owner-page.http.ts'

declare module 'fastify' {
  interface FastifyRequest {
    visitor: Visitor | null
  }
}

/** Returns the session of a page's visitor; `ended` for one that was. */
export async function findVisitor(
  deps: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  purpose: Purpose,
): Promise<BrowserSession | 'ended' | undefined> {
  try {
    return await findBrowserSession(deps, request, reply, purpose)
  } catch (error) {
    if (!(error instanceof ApiError)) throw error
    return error.code === 'session_required' ? 'ended' : undefined
  }
}

/**
 * Requires a session for all pages of `app`, which counts as a read of its token. Other visitors are led to the sign-in
 * page, and from there back. Without `MEDIA_LIBRARY` the pages do not exist.
 */
export function requireVisitor(app: FastifyInstance, deps: Deps): void {
  app.decorateRequest('visitor', null)
  app.decorateRequest('apiToken', null)
  app.decorateRequest('clientAddress', null)
  app.addHook('onRequest', async (request, reply) => {
    if (!deps.config.hasLibrary) throw apiError('not_found')
    const isRead = request.method === 'GET' || request.method === 'HEAD'
    const session = await findVisitor(deps, request, reply, isRead ? 'page' : 'change')
    if (session === undefined || session === 'ended') return leadToSignIn(deps, request, reply, session)
    const { token, formToken } = session
    request.visitor = { language: languageOf(request), token, formToken }
    useToken(deps, request, token)
    await deps.limits.count(request, reply, 'read')
  })
  const answers = errorAnswers(deps.config.site.baseUrl + ERRORS_PATH)
  app.setErrorHandler((error, request, reply) => {
    const failure = explainFailure(error, request, answers)
    if (!request.visitor || !acceptsHtml(request)) throw failure
    return sendProblem(deps, reply, request.visitor, failure)
  })
}

export function visitorOf({ visitor }: FastifyRequest): Visitor {
  if (!visitor) throw new Error('route outside the scope of requireVisitor')
  return visitor
}

/** Returns the visitor if the token has the scope; throws insufficient_scope, which the page names. */
export function visitorWith(request: FastifyRequest, scope: Scope): Visitor {
  const visitor = visitorOf(request)
  if (!allows(visitor.token, scope)) throw apiError('insufficient_scope', { details: { scope } })
  return visitor
}

/** Answers a failure by a page. Unknown, deleted and foreign clips get the same one. */
function sendProblem({ config }: Deps, reply: FastifyReply, visitor: Visitor, failure: ApiError) {
  const { code, message, status, details, retryAfterSeconds } = failure
  const words = frameWords[visitor.language]
  const isMissing = status === 404 || status === 410
  const problem = isMissing ? words.notFoundText : (failureWords[visitor.language][code] ?? message)
  const scope = code === 'insufficient_scope' && `${words.needsScope} ${details?.scope}`
  if (retryAfterSeconds) reply.header('retry-after', retryAfterSeconds)
  return sendSignedInPage(reply.code(isMissing ? 404 : status), config.site, visitor, {
    title: isMissing ? words.notFound : words.problem,
    body: html`${notice('problem', scope || problem)}<p><a href="${config.site.baseUrl}/library">${words.toLibrary}</a></p>\n`,
  })
}

/** A form that was sent without a session leads back to the page that it is on. */
function leadToSignIn({ config }: Deps, request: FastifyRequest, reply: FastifyReply, session: 'ended' | undefined) {
  const next = request.method === 'GET' ? request.url : request.url.replace(/(?<=\/\w+)\/.*/, '')
  const query = new URLSearchParams({ next, ...(session === 'ended' && { ended: '1' }) })
  return reply.header('cache-control', 'private, no-store').redirect(`${config.site.baseUrl}/session?${query}`, 303)
}
