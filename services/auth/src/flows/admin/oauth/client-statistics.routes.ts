// Sign-ins by client of the OAuth server, for the console. How they are counted: core/statistics.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { findOAuthClient } from '../../../core/oauth-server/oauth-clients.store.ts'
import { listClientCounts } from '../../../core/statistics/counts.store.ts'
import { DAY_MS } from '../../../core/statistics/statistics.ts'
import type { Deps } from '../../../deps.ts'
import { ClientParams, requireClientId } from '../../../http/bodies/oauth-client.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'
import { countsOf, DaysQuery, firstOf, parseDays } from '../counted-days.ts'
import { noSuchClient } from './manage-clients.ts'

const DayShape = Type.Object(
  {
    from: Type.String({ format: 'date-time', description: 'Begin of the day, in UTC.' }),
    grants: Type.Record(Type.String(), Type.Integer({ minimum: 0 }), {
      description: 'Sign-ins, and tokens of its own, by grant type. Refreshes are not counted.',
    }),
  },
  { title: 'ClientDay' },
)

export const clientStatisticsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)

  app.route({
    method: 'GET',
    url: '/admin/oauth/clients/:client_id/statistics',
    schema: {
      operationId: 'getOAuthClientStatistics',
      tags: ['admin'],
      summary: 'Sign-ins at a client on each of the last days',
      description:
        'Oldest first, up to the day that has begun. Each process writes its counts once a minute, so the answer may lack the last minute of others. Counting requires AUTH_CONSOLE_ENABLED.',
      security: [{ admin: [] }],
      params: ClientParams,
      querystring: DaysQuery,
      response: { 200: Type.Object({ days: Type.Array(DayShape) }), ...errorResponses(400, 401, 403, 404) },
    },
    handler: async ({ params, query }) => {
      const statistics = countsOf(deps)
      const [id, days] = [requireClientId(params.client_id), parseDays(query)]
      if (!(await findOAuthClient(deps.db, id))) noSuchClient()
      const now = deps.now()
      const day = firstOf(now, DAY_MS, days)
      await statistics.write()
      const byDay = Map.groupBy(await listClientCounts(deps.db, id, { day, now }), ({ from }) => from.getTime())
      return {
        days: Array.from({ length: days }, (_, i) => {
          const from = new Date(day.getTime() + i * DAY_MS)
          const counts = byDay.get(from.getTime()) ?? []
          return {
            from: from.toISOString(),
            grants: Object.fromEntries(counts.map((each) => [each.grant, each.count])),
          }
        }),
      }
    },
  })
}
