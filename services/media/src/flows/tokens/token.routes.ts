// /tokens and the commands `tokens …`. A token is shown once, when it is created. Tests: test/tokens.test.ts,
// test/bootstrap-token.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { parseDurationSeconds, SECONDS_OR_DURATION } from '@services/common/config/duration'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { invalidField, oneLine } from '../../core/clips/clip-fields.ts'
import { createTokenAs, revokeTokenAs } from '../../core/tokens/create-token.ts'
import { ALL_SCOPES, USUAL_SCOPES } from '../../core/tokens/scopes.ts'
import { listTokens } from '../../core/tokens/tokens.store.ts'
import { TOKEN_LIMITS, type TokenLimits } from '../../db/tables.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { adminOf, requireToken } from '../../http/authenticate.ts'
import { answers, counted, errorResponses, orNull, Time, tokenRoute } from '../../http/shapes.ts'
import { LONGEST_LIFE_SECONDS } from './token-options.ts'

const MAX_NAME = 100

const ScopeShape = Type.Enum(ALL_SCOPES, { title: 'Scope' })
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
  scopes: Type.Optional(Type.Array(ScopeShape, { minItems: 1, maxItems: ALL_SCOPES.length })),
  limits: Type.Optional(LimitsShape),
  expires_in: Type.Optional(
    Type.Union([Type.Integer(), Type.String()], {
      description: 'Lifetime as in `30d` or seconds; the token never expires if absent.',
      ...inDocument({ anyOf: undefined, type: ['integer', 'string'] }),
    }),
  ),
})

/** Reads whole seconds. Throws invalid_field. */
function readLife(span: string | number): number {
  const seconds = Math.floor(parseDurationSeconds(String(span).trim()) ?? 0)
  if (seconds >= 1 && seconds <= LONGEST_LIFE_SECONDS) return seconds
  throw invalidField('expires_in', `must be ${SECONDS_OR_DURATION}, from a second to 100 years`)
}

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
        ...tokenRoute('tokens', 'listTokens', 'All tokens without their secret parts'),
        response: answers(200, Type.Object({ items: Type.Array(TokenShape) }), [401, 403, 429]),
      },
    },
    async () => ({ success: { items: await listTokens(deps.db) } }),
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
      const name = oneLine(request.body.name)
      if (!name || name.length > MAX_NAME) throw invalidField('name', `must be 1 to ${MAX_NAME} characters`)
      const expiresAt = span === undefined ? null : new Date(deps.now().getTime() + readLife(span) * 1000)
      const success = await createTokenAs(deps, adminOf(request), {
        ...{ name, scopes: [...new Set(scopes)], limits, expiresAt },
      })
      return reply.code(201).send({ success })
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
