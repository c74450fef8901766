// /tokens and the commands `tokens …`. A token is shown once, when it is created. Tests: test/tokens.test.ts,
// test/bootstrap-token.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { type Static, Type } from 'typebox'
import { readTokenEnd, readTokenName } from '../../core/administration/token-input.ts'
import { invalidField } from '../../core/clips/clip-fields.ts'
import { changeTokenAs, createTokenAs, revokeTokenAs } from '../../core/tokens/create-token.ts'
import { ALL_SCOPES, USUAL_SCOPES } from '../../core/tokens/scopes.ts'
import { type ApiToken, listTokensAfter } from '../../core/tokens/tokens.store.ts'
import { TOKEN_LIMITS, type TokenLimits } from '../../db/tables.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { adminOf, requireToken } from '../../http/authenticate.ts'
import { cutPage, linkToNext, pageOf, pageQuery, readPage } from '../../http/cursor.ts'
import { answers, counted, errorResponses, orNull, Time, tokenRoute } from '../../http/shapes.ts'

const ScopeShape = Type.Enum(ALL_SCOPES, { title: 'Scope' })
const ScopesShape = Type.Array(ScopeShape, { minItems: 1, maxItems: ALL_SCOPES.length })
const LimitsShape = Type.Unsafe<TokenLimits>(
  Type.Object(
    Object.fromEntries(
      TOKEN_LIMITS.map((name) => [
        name,
        Type.Optional(Type.Integer({ minimum: 1, maximum: name.endsWith('_bytes') ? 2 ** 53 - 1 : 999_999_999 })),
      ]),
    ),
    {
      title: 'TokenLimits',
      additionalProperties: false,
      description: "Limits of the token instead of the service's own.",
    },
  ),
)
const tokenMembers = {
  id: Type.String(),
  name: Type.String(),
  prefix: Type.String({ description: 'First characters of the token.' }),
  scopes: Type.Array(ScopeShape),
  limits: LimitsShape,
  created_at: Time,
  last_used_at: orNull(Time),
  expires_at: orNull(Time),
  revoked_at: orNull(Time),
}
const TokenShape = Type.Object(tokenMembers, { title: 'Token' })
const NewTokenShape = Type.Object(
  { ...tokenMembers, token: Type.String({ description: 'Secret value; shown once.' }) },
  { title: 'NewToken' },
)

const CreateBody = Type.Object({
  name: Type.String({ minLength: 1, description: 'Purpose of the token.' }),
  scopes: Type.Optional(ScopesShape),
  limits: Type.Optional(LimitsShape),
  expires_in: Type.Optional(
    Type.Union([Type.Integer(), Type.String()], {
      description: 'Lifetime as in `30d` or seconds; the token never expires if absent.',
      ...inDocument({ anyOf: undefined, type: ['integer', 'string'] }),
    }),
  ),
})

/** Null removes an end or a limit; an absent member stays. */
const ChangeBody = Type.Object({
  name: Type.Optional(Type.String({ minLength: 1 })),
  scopes: Type.Optional(ScopesShape),
  limits: Type.Optional(LimitsShape),
  expires_in: Type.Optional(
    Type.Union([Type.Integer(), Type.String(), Type.Null()], {
      description: 'Lifetime from now; null: the token never expires.',
      ...inDocument({ anyOf: undefined, type: ['integer', 'string', 'null'] }),
    }),
  ),
})

export const tokenRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireToken(app, deps, { scope: 'admin' })
  app.addHook('onRequest', async (request, reply) => {
    await deps.limits.count(request, reply, 'read')
    reply.header('cache-control', 'no-store')
  })

  app.get(
    '/tokens',
    {
      schema: {
        ...tokenRoute('tokens', 'listTokens', 'All tokens without their secret parts, newest first'),
        querystring: Type.Object(pageQuery),
        response: answers(200, pageOf(TokenShape), [401, 403, 422, 429], 'Link'),
      },
    },
    async (request, reply) => {
      const { after, limit } = readPage(request.query, isUuid)
      const rows = await listTokensAfter(deps.db, { after, limit: limit + 1 })
      const { items, nextCursor } = cutPage(rows.map(positioned), limit)
      if (nextCursor) {
        const next = { limit: request.query.limit, cursor: nextCursor }
        reply.header('link', linkToNext(deps.config.site.baseUrl, '/tokens', next))
      }
      return { success: { items, next_cursor: nextCursor } }
    },
  )

  app.post(
    '/tokens',
    {
      schema: {
        ...tokenRoute('tokens', 'createToken', 'Creates a token, which is shown once'),
        body: CreateBody,
        response: answers(201, NewTokenShape, [400, 401, 403, 408, 413, 415, 422, 429]),
      },
    },
    async (request, reply) => {
      const { scopes = USUAL_SCOPES, limits = {}, expires_in: span } = request.body
      const name = readTokenName(request.body.name)
      const expiresAt = span === undefined ? null : readTokenEnd(span, deps.now())
      const success = await createTokenAs(deps, adminOf(request), {
        ...{ name, scopes: [...new Set(scopes)], limits, expiresAt },
      })
      return reply.code(201).send({ success })
    },
  )

  app.patch<{ Params: { id: string }; Body: Static<typeof ChangeBody> }>(
    '/tokens/:id',
    {
      schema: {
        ...tokenRoute('tokens', 'updateToken', 'Changes name, scopes, limits or lifetime of a token'),
        params: Type.Object({ id: Type.String() }),
        body: ChangeBody,
        response: answers(200, TokenShape, [400, 401, 403, 404, 408, 413, 415, 422, 429]),
      },
    },
    async (request) => {
      const { name, scopes, limits, expires_in: span } = request.body
      const changes = {
        ...(name !== undefined && { name: readTokenName(name) }),
        ...(scopes && { scopes: [...new Set(scopes)] }),
        ...(limits && { limits }),
        ...(span !== undefined && { expiresAt: span === null ? null : readTokenEnd(span, deps.now()) }),
      }
      if (Object.keys(changes).length === 0) throw invalidField('name', 'or another member to change is required')
      const { id } = request.params
      const changed = isUuid(id) ? await changeTokenAs(deps, adminOf(request), id, changes) : undefined
      if (!changed) throw apiError('not_found')
      return { success: changed }
    },
  )

  app.delete<{ Params: { id: string } }>(
    '/tokens/:id',
    {
      schema: {
        ...tokenRoute('tokens', 'revokeToken', 'Revokes a token at once; its clips stay'),
        params: Type.Object({ id: Type.String() }),
        response: { 204: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 413, 415, 429) },
      },
    },
    async (request, reply) => {
      const { id } = request.params
      const revoked = isUuid(id) && (await revokeTokenAs(deps, adminOf(request), id))
      if (!revoked) throw apiError('not_found')
      return reply.code(204).send()
    },
  )
}

const positioned = (token: ApiToken) => ({ ...token, createdAt: token.created_at })
