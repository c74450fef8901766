// Use of a token by day, and the browsers that are signed in with it. Tests: token-usage.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { MAX_DAYS, readSpan } from '../../core/lists/day-span.ts'
import { listSessionsOf } from '../../core/tokens/browser-sessions.store.ts'
import { endSessionsAs } from '../../core/tokens/create-token.ts'
import { findTokenById } from '../../core/tokens/tokens.store.ts'
import { listTokenDays } from '../../core/tokens/usage.store.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { adminOf, requireToken } from '../../http/authenticate.ts'
import { answers, daysQuery, orNull, Time, tokenRoute } from '../../http/shapes.ts'

const UsageShape = Type.Object(
  {
    days: Type.Array(
      Type.Object({
        day: Type.String(),
        requests: Type.Integer(),
        clips: Type.Integer({ description: 'Clips that were added.' }),
        bytes: Type.Integer({ description: 'Bytes of their sources.' }),
      }),
      { description: 'Days on which it was used, oldest first.' },
    ),
  },
  { title: 'TokenUsage' },
)

const SessionShape = Type.Object({
  client_name: orNull(Type.String({ description: 'Family of the browser.' })),
  created_at: Time,
  last_used_at: Time,
  expires_at: Time,
})

const withId = { params: Type.Object({ id: Type.String() }) }
type WithId = { Params: { id: string } }

export const tokenUsageRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireToken(app, deps, { scope: 'admin' })
  app.addHook('onRequest', async (request, reply) => {
    await deps.limits.count(request, reply, 'read')
    reply.header('cache-control', 'no-store')
  })

  app.get<WithId & { Querystring: { from?: string; to?: string } }>(
    '/tokens/:id/usage',
    {
      schema: {
        ...tokenRoute('tokens', 'getTokenUsage', 'Calls, clips and bytes of a token by day'),
        description: `At most ${MAX_DAYS} days; the last 30 without \`from\`. Calls of the last seconds may be missing.`,
        ...withId,
        querystring: Type.Object(daysQuery),
        response: answers(200, UsageShape, [401, 403, 404, 422, 429]),
      },
    },
    async (request) => {
      const span = readSpan(request.query, deps.now())
      const id = await requireKnown(request.params.id)
      return { success: { days: await listTokenDays(deps.db, id, span) } }
    },
  )

  app.get<WithId>(
    '/tokens/:id/sessions',
    {
      schema: {
        ...tokenRoute('tokens', 'listTokenSessions', 'Browsers that are signed in with a token, 100 at most'),
        ...withId,
        response: answers(200, Type.Object({ items: Type.Array(SessionShape) }), [401, 403, 404, 429]),
      },
    },
    async (request) => {
      const id = await requireKnown(request.params.id)
      return { success: { items: await listSessionsOf(deps.db, id, deps.now()) } }
    },
  )

  app.delete<WithId>(
    '/tokens/:id/sessions',
    {
      schema: {
        ...tokenRoute('tokens', 'endTokenSessions', 'Signs out all browsers of a token, which stays good'),
        ...withId,
        response: answers(200, Type.Object({ ended: Type.Integer() }), [400, 401, 403, 404, 408, 413, 415, 429]),
      },
    },
    async (request) => {
      const id = await requireKnown(request.params.id)
      return { success: { ended: await endSessionsAs(deps, adminOf(request), id) } }
    },
  )

  async function requireKnown(id: string): Promise<string> {
    if (!isUuid(id) || !(await findTokenById(deps.db, id))) throw apiError('not_found')
    return id
  }
}
