// Sign-in and sign-out of a browser: POST and DELETE /session, and the page with the same for browsers without script.
// The session itself: http/browser-session.ts. Tests: session.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { endSessionsOf } from '../../../core/tokens/browser-sessions.store.ts'
import type { ApiToken } from '../../../core/tokens/tokens.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { findToken, presentedToken } from '../../../http/authenticate.ts'
import { acceptSmallForms } from '../../../http/body-parsers.ts'
import {
  type BrowserSession,
  beginSession,
  endBrowserSession,
  findBrowserSession,
  isOwnForm,
  requireOwnPage,
  requireOwnScript,
} from '../../../http/browser-session.ts'
import { addressKeyOf } from '../../../http/rate-limit.ts'
import { errorResponses, HtmlPage, PageOrError } from '../../../http/shapes.ts'
import { languageOf } from '../../../words/language.ts'
import { sendOwnerPage } from '../owner-page.http.ts'
import { findVisitor } from '../visitor.http.ts'
import { type Problem, signedInPage, signInPage } from './session-page.ts'

const MAX_BODY_BYTES = 8 * 1024

/** Attempts of one client address; callers of unknown address share none, because one could block all. */
const ATTEMPTS = { points: 30, seconds: 60 }

const MAX_NEXT = 2000

/** Where a browser goes after the sign-in that names no page. */
const HOME = '/library'

const PROBLEMS: Record<string, Problem> = {
  token_missing_or_invalid: 'refused',
  rate_limited: 'tooMany',
  wrong_origin: 'wrongOrigin',
}

const SignInBody = Type.Optional(
  Type.Union([Type.Null(), Type.Object({ token: Type.Optional(Type.String()), next: Type.Optional(Type.String()) })]),
)

const EndBody = Type.Object({ form_token: Type.String(), all: Type.Optional(Type.String()) })

export const sessionRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config } = deps
  const { site } = config
  acceptSmallForms(app, MAX_BODY_BYTES)
  app.addHook('onRequest', async () => {
    if (!config.hasLibrary) throw apiError('not_found')
  })

  app.get(
    '/session',
    {
      schema: {
        operationId: 'getSessionPage',
        tags: ['session'],
        summary: 'The form that takes a token, or the session that there is',
        querystring: Type.Object({
          next: Type.Optional(
            Type.Unknown({ description: 'Path of the page to go on to.', ...inDocument({ type: 'string' }) }),
          ),
          ended: Type.Optional(
            Type.Unknown({ description: 'Present where a session has ended.', ...inDocument({ type: 'string' }) }),
          ),
        }),
        response: { 200: HtmlPage, 303: withHeaders(Type.Null(), 'Location'), ...errorResponses(404, 429) },
      },
    },
    async (request, reply) => {
      const { next, ended } = request.query
      const language = languageOf(request)
      const session = await findVisitor(deps, request, reply, 'page')
      if (!session || session === 'ended') {
        const problem = session ?? (ended === undefined ? undefined : 'ended')
        return sendOwnerPage(reply, site, signInPage(site, language, pathOf(next), problem))
      }
      if (next !== undefined) return reply.redirect(site.baseUrl + pathOf(next), 303)
      return sendOwnerPage(reply, site, signedInPage(site, language, session))
    },
  )

  app.post(
    '/session',
    {
      bodyLimit: MAX_BODY_BYTES,
      schema: {
        operationId: 'beginSession',
        tags: ['session'],
        summary: 'Signs a browser in with a token',
        description:
          'For our own pages alone. With the header `Token` the answer is 204; a form gets 303 to `next`, a path of this ' +
          'service. The cookie lasts 30 days from its last use, and ends with the token.',
        consumes: ['application/x-www-form-urlencoded'],
        body: SignInBody,
        response: {
          ...{ 204: Type.Null(), 303: withHeaders(Type.Null(), 'Location') },
          ...{ 401: PageOrError, 403: PageOrError, 429: PageOrError, ...errorResponses(400, 404, 408, 413, 415, 422) },
        },
      },
    },
    async (request, reply) => {
      const { token: typed, next } = request.body ?? {}
      const isForm = typed !== undefined
      try {
        await beginSession(deps, request, reply, await requireSignIn(request, typed))
      } catch (error) {
        const problem = isForm && error instanceof ApiError ? PROBLEMS[error.code] : undefined
        if (!problem) throw error
        const { status, retryAfterSeconds } = error as ApiError
        if (retryAfterSeconds) reply.header('retry-after', retryAfterSeconds)
        return sendOwnerPage(
          reply.code(status as 401),
          site,
          signInPage(site, languageOf(request), pathOf(next), problem),
        )
      }
      reply.header('cache-control', 'private, no-store')
      return isForm ? reply.redirect(site.baseUrl + pathOf(next), 303) : reply.code(204).send(null)
    },
  )

  app.delete(
    '/session',
    {
      schema: {
        operationId: 'endSession',
        tags: ['session'],
        summary: 'Signs the browser out',
        querystring: Type.Object({
          all: Type.Optional(
            Type.Literal('1', { description: 'Ends all sessions of the token.', ...inDocument({ type: 'string' }) }),
          ),
        }),
        response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 422, 429) },
      },
    },
    async (request, reply) => {
      const session = await requireSession(request, reply)
      requireOwnScript(request)
      await end(reply, session, request.query.all !== undefined)
      return reply.code(204).send(null)
    },
  )

  app.post(
    '/session/end',
    { bodyLimit: MAX_BODY_BYTES, schema: { hide: true, body: EndBody } },
    async (request, reply) => {
      const { form_token: given, all } = request.body
      const session = await findVisitor(deps, request, reply, 'change')
      if (session === 'ended') return sendOwnerPage(reply, site, signInPage(site, languageOf(request), HOME, 'ended'))
      // The form of an earlier session, in another tab: the page shows what there is now.
      if (session && isOwnForm(session, given)) await end(reply, session, all !== undefined)
      return reply.redirect(`${site.baseUrl}/session`, 303)
    },
  )

  async function requireSession(request: FastifyRequest, reply: FastifyReply): Promise<BrowserSession> {
    const session = await findBrowserSession(deps, request, reply, 'change')
    if (!session) throw apiError('session_required')
    return session
  }

  /** Checks a token, of the form or of a header. Throws wrong_origin, rate_limited, token_missing_or_invalid. */
  async function requireSignIn(request: FastifyRequest, typed: string | undefined): Promise<ApiToken> {
    requireOwnPage(config, request, 'change')
    const { header } = config.limits
    if (header !== undefined) await deps.limits.countKey('session', ATTEMPTS, addressKeyOf(request, header))
    const token = await findToken(deps, typed?.trim() ?? presentedToken(request))
    if (!token) throw apiError('token_missing_or_invalid')
    return token
  }

  async function end(reply: FastifyReply, session: BrowserSession, isAll: boolean): Promise<void> {
    if (isAll) await endSessionsOf(deps.db, session.token.id)
    await endBrowserSession(deps, reply, session)
  }
}

/** Returns a path of this service; the usual one in place of any other address. */
const pathOf = (next: unknown): string =>
  typeof next === 'string' && next.length <= MAX_NEXT && /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(next) ? next : HOME
