// Tokens: made, changed, their use and sessions seen, and revoked. Tests: tokens.test.ts.
import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { html } from '@services/common/html'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { readTokenEnd, readTokenName } from '../../../core/administration/token-input.ts'
import { invalidField } from '../../../core/clips/clip-fields.ts'
import type { KeyedRequest } from '../../../core/idempotency/idempotency.store.ts'
import { readSpan } from '../../../core/lists/day-span.ts'
import { listSessionsOf } from '../../../core/tokens/browser-sessions.store.ts'
import { changeTokenAs, createTokenOnce, endSessionsAs, revokeTokenAs } from '../../../core/tokens/create-token.ts'
import { ALL_SCOPES } from '../../../core/tokens/scopes.ts'
import { findTokenById, listTokensAfter } from '../../../core/tokens/tokens.store.ts'
import { listTokenDays } from '../../../core/tokens/usage.store.ts'
import { TOKEN_LIMITS, type TokenLimits } from '../../../db/tables.ts'
import { isUuid } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { adminOf } from '../../../http/authenticate.ts'
import { cutPage, readPage } from '../../../http/cursor.ts'
import { doneNotice, leadBack, sendAdminPage, viewOf } from './admin-page.http.ts'
import { changedSince, tokenPage, tokensPage } from './token-pages.ts'

const PER_PAGE = 50

const Text = Type.Optional(Type.String({ maxLength: 300 }))
const ListQuery = Type.Object({ cursor: Text, done: Text })
const TokenQuery = Type.Object({ done: Text, ended: Text })
const Fields = Type.Record(Type.String(), Type.String())
const withId = Type.Object({ id: Type.String() })
type WithId = { Params: { id: string } }

export const adminTokenRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, now } = deps

  app.get('/admin/tokens', { schema: { hide: true, querystring: ListQuery } }, async (request, reply) =>
    sendList(request, reply, request.query),
  )

  app.post('/admin/tokens', { schema: { hide: true, body: Fields } }, async (request, reply) => {
    try {
      const { name, scopes, limits } = readFields(request.body)
      const span = request.body.expires_in?.trim()
      const input = { name, scopes, limits, expiresAt: span ? readTokenEnd(span, now()) : null }
      const created = await createTokenOnce(deps, adminOf(request), input, keyOf(request))
      if (created === undefined) return sendList(request, reply, { problem: viewOf(deps, request).words.madeBefore })
      return sendList(request, reply.code(201), { created })
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 'invalid_field') throw error
      return sendList(request, reply.code(422), { problem: error.message, typed: request.body })
    }
  })

  app.get<WithId & { Querystring: { done?: string; ended?: string } }>(
    '/admin/tokens/:id',
    { schema: { hide: true, params: withId, querystring: TokenQuery } },
    async (request, reply) => sendToken(request, reply, request.query),
  )

  app.post<WithId & { Body: Record<string, string> }>(
    '/admin/tokens/:id',
    { schema: { hide: true, params: withId, body: Fields } },
    async (request, reply) => {
      const id = idOf(request)
      try {
        const span = request.body.expires_in?.trim()
        const expires = !span ? {} : { expiresAt: span === 'never' ? null : readTokenEnd(span, now()) }
        const changes = { ...readFields(request.body), ...expires }
        let problem: string | undefined
        const changed = await changeTokenAs(deps, adminOf(request), id, changes, (token) => {
          problem = changedSince(viewOf(deps, request), token, request.body)
          return problem === undefined
        })
        if (problem) return sendToken(request, reply.code(412), { problem, typed: request.body })
        if (!changed) throw apiError('not_found')
        return leadBack(deps, reply, `/admin/tokens/${id}`, { done: 'token_changed' })
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'invalid_field') throw error
        return sendToken(request, reply.code(422), { problem: error.message, typed: request.body })
      }
    },
  )

  app.post<WithId>('/admin/tokens/:id/sessions', { schema: { hide: true, params: withId } }, async (request, reply) => {
    const id = idOf(request)
    if (!(await findTokenById(db, id))) throw apiError('not_found')
    const ended = await endSessionsAs(deps, adminOf(request), id)
    return leadBack(deps, reply, `/admin/tokens/${id}`, { done: 'sessions_ended', ended: String(ended) })
  })

  app.post<WithId>('/admin/tokens/:id/revoke', { schema: { hide: true, params: withId } }, async (request, reply) => {
    const id = idOf(request)
    if (!(await revokeTokenAs(deps, adminOf(request), id))) throw apiError('not_found')
    return leadBack(deps, reply, `/admin/tokens/${id}`, { done: 'token_revoked' })
  })

  async function sendList(
    request: FastifyRequest,
    reply: FastifyReply,
    { cursor, ...shown }: { cursor?: string; created?: string; problem?: string; typed?: Record<string, string> },
  ) {
    const { after } = readPage({ cursor }, isUuid)
    const rows = await listTokensAfter(db, { after, limit: PER_PAGE + 1 })
    const { items, nextCursor } = cutPage(
      rows.map((token) => ({ ...token, createdAt: token.created_at })),
      PER_PAGE,
    )
    const list = { tokens: items, cursor, nextCursor, ...shown, formId: deps.newId(), now: now() }
    return sendAdminPage(deps, request, reply, { section: 'tokens', body: tokensPage(viewOf(deps, request), list) })
  }

  async function sendToken(
    request: FastifyRequest<WithId>,
    reply: FastifyReply,
    {
      done,
      ended,
      problem,
      typed,
    }: { done?: string; ended?: string; problem?: string; typed?: Record<string, string> },
  ) {
    const id = idOf(request)
    const view = viewOf(deps, request)
    const [token, days, sessions] = await Promise.all([
      findTokenById(db, id),
      listTokenDays(db, id, readSpan({}, now())),
      listSessionsOf(db, id, now()),
    ])
    if (!token) throw apiError('not_found')
    return sendAdminPage(deps, request, reply, {
      ...{ section: 'tokens', title: token.name },
      body: html`${doneNotice(view, done, /^\d+$/.test(ended ?? '') ? ended : undefined)}${tokenPage(view, { token, days, sessions, problem, typed, now: now() })}`,
    })
  }
}

/**
 * Key of a form that creates a token: its id and all that was typed. A reload makes no second token; another name in
 * the same form makes one.
 */
function keyOf({ body, apiToken }: FastifyRequest<{ Body: Record<string, string> }>): KeyedRequest | undefined {
  const { form_token: _, form_id: formId, ...typed } = body
  if (!formId || !apiToken) return undefined
  const fingerprint = createHash('sha256')
    .update(JSON.stringify([formId, typed]))
    .digest()
  return { tokenId: apiToken.id, route: 'tokens', key: fingerprint.toString('hex'), fingerprint }
}

function idOf({ params: { id } }: FastifyRequest<WithId>): string {
  if (!isUuid(id)) throw apiError('not_found')
  return id
}

/** Reads name, scopes and limits of a form. Throws invalid_field. */
function readFields(body: Record<string, string>) {
  const scopes = ALL_SCOPES.filter((scope) => body[`scope_${scope}`] !== undefined)
  if (scopes.length === 0) throw invalidField('scopes', 'must be some of the four')
  const limits: TokenLimits = {}
  for (const limit of TOKEN_LIMITS) {
    const text = body[`limit_${limit}`]?.trim()
    if (!text) continue
    if (!/^[1-9]\d{0,15}$/.test(text)) throw invalidField(limit, 'must be a whole number of 1 or more')
    limits[limit] = Number(text)
  }
  return { name: readTokenName(body.name ?? ''), scopes: [...scopes], limits }
}
