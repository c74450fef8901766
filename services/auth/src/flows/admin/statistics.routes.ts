// Numbers of the console's overview. How they are counted: core/statistics.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { type ListedCount, listCounts } from '../../core/statistics/counts.store.ts'
import { DAY_MS, HOUR_MS } from '../../core/statistics/statistics.ts'
import type { MessageChannel } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'
import { countsOf, DaysQuery, firstOf, parseDays } from './counted-days.ts'

const HOURS = 24

const Count = Type.Integer({ minimum: 0 })
const ByMethod = Type.Record(Type.String(), Count)
const Messages = Type.Object({ sent: Count, failed: Count, dropped: Count }, { title: 'MessageCounts' })

const CountsShape = Type.Object(
  {
    from: Type.String({ format: 'date-time', description: 'Begin of the hour or day, in UTC.' }),
    sign_ups: Type.Record(Type.String(), Count, { description: 'Accounts created by users, by method.' }),
    sign_ins: Type.Record(Type.String(), Count, {
      description: 'Sign-ins by method: `password`, `otp` (code or link), `passkey`, `id_token`, `web3` or a provider.',
    }),
    failures: Type.Record(Type.String(), ByMethod, {
      description: 'Refused sign-ins, second factors and tokens of admins, by method and then by error code.',
    }),
    messages: Type.Object({ mail: Messages, sms: Messages }),
    queue: Type.Object(
      { jobs: Count, oldest_seconds: Count },
      { description: 'Most waiting jobs, and the longest that one has waited.' },
    ),
  },
  { title: 'Counts' },
)

const StatisticsShape = Type.Object(
  { hours: Type.Array(CountsShape), days: Type.Array(CountsShape) },
  { title: 'Statistics' },
)

export const statisticsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/statistics',
    schema: {
      operationId: 'getStatistics',
      tags: ['admin'],
      summary: 'Sign-ups, sign-ins, failures, messages and queue of the last 24 hours and of the last days',
      description:
        'Oldest first; the last hour and day are those that have begun, and days are those of UTC. Each process writes its counts once a minute, so the answer may lack the last minute of others. Counting requires AUTH_CONSOLE_ENABLED.',
      security: [{ admin: [] }],
      querystring: DaysQuery,
      response: { 200: StatisticsShape, ...errorResponses(400, 401, 403, 404) },
    },
    handler: async ({ query }) => {
      const statistics = countsOf(deps)
      const days = parseDays(query)
      const now = deps.now()
      const [hour, day] = [firstOf(now, HOUR_MS, HOURS), firstOf(now, DAY_MS, days)]
      await statistics.write()
      const counts = await listCounts(deps.db, { hour, day, now })
      return { hours: bodiesOf(counts, 'hour', hour, HOURS), days: bodiesOf(counts, 'day', day, days) }
    },
  })
}

function bodiesOf(counts: readonly ListedCount[], unit: ListedCount['unit'], first: Date, units: number) {
  const byBegin = Map.groupBy(
    counts.filter((each) => each.unit === unit),
    ({ from }) => from.getTime(),
  )
  const unitMs = unit === 'hour' ? HOUR_MS : DAY_MS
  const begins = Array.from({ length: units }, (_, i) => first.getTime() + i * unitMs)
  return begins.map((begin) => toBody(new Date(begin), byBegin.get(begin) ?? []))
}

type Counts = Static<typeof CountsShape>

function toBody(from: Date, counts: readonly ListedCount[]): Counts {
  const body: Counts = {
    ...{ from: from.toISOString(), sign_ups: {}, sign_ins: {}, failures: {} },
    messages: { mail: { sent: 0, failed: 0, dropped: 0 }, sms: { sent: 0, failed: 0, dropped: 0 } },
    queue: { jobs: 0, oldest_seconds: 0 },
  }
  for (const { event, method, result, count } of counts) {
    if (event === 'sign_up') body.sign_ups[method] = count
    else if (event === 'message') Object.assign(body.messages[method as MessageChannel], { [result]: count })
    else if (event === 'queue') Object.assign(body.queue, { [result]: count })
    else if (result === 'ok') body.sign_ins[method] = count
    else body.failures[method] = { ...body.failures[method], [result]: count }
  }
  return body
}
