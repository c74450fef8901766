// Views of a clip by day, and views that a CDN counted. Counting: http/record-view.ts. Tests: test/views.test.ts.
import { createHash } from 'node:crypto'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { invalidField } from '../../core/clips/clip-fields.ts'
import { findOwnClip } from '../../core/clips/own-clip.ts'
import { answerOnce } from '../../core/idempotency/answer-once.ts'
import { MAX_DAYS, readDay, readSpan } from '../../core/lists/day-span.ts'
import { dayOf } from '../../core/tokens/usage.store.ts'
import { addViews, type DayViews, findDays, VIEW_KINDS } from '../../core/views/views.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { addTokenRoutes, tokenOf } from '../../http/authenticate.ts'
import { readKey } from '../../http/idempotency-key.ts'
import { answers, Day, daysQuery, tokenRoute } from '../../http/shapes.ts'

const MAX_ENTRIES = 1000

const Counts = { page: Type.Integer(), embed: Type.Integer(), file: Type.Integer() }
const ViewsShape = Type.Object(
  {
    days: Type.Array(Type.Object({ day: Type.String(), ...Counts }), { description: 'Days with views, oldest first.' }),
    total: Type.Object(Counts, { description: 'Sums over all days.' }),
  },
  { title: 'Views' },
)

const Entry = Type.Object({
  id: Type.String({ maxLength: 8 }),
  kind: Type.Union(VIEW_KINDS.map((kind) => Type.Literal(kind))),
  day: Day('UTC day.'),
  count: Type.Integer({ minimum: 1, maximum: 1_000_000_000 }),
})
const Batch = Type.Array(Entry, { minItems: 1, maxItems: MAX_ENTRIES })

export const viewRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, config, now } = deps
  app.addHook('onRequest', async () => {
    if (!config.views.areCounted) throw apiError('not_found')
  })

  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.get<{ Params: { id: string }; Querystring: { from?: string; to?: string } }>(
      '/media/:id/views',
      {
        schema: {
          ...tokenRoute('media', 'getViews', 'Views of a clip by day'),
          description: `At most ${MAX_DAYS} days; the last 30 without \`from\`. Views of the last seconds may be missing.`,
          params: Type.Object({ id: Type.String() }),
          querystring: Type.Object(daysQuery),
          response: answers(200, ViewsShape, [401, 403, 404, 410, 422, 429]),
        },
      },
      async (request) => {
        const span = readSpan(request.query, now())
        const { id } = await findOwnClip(deps, tokenOf(request), request.params.id)
        return { success: await findDays(db, id, span) }
      },
    )
  })

  await addTokenRoutes(app, deps, { scope: 'admin' }, async (part) => {
    part.post<{ Body: Static<typeof Batch> }>(
      '/views',
      {
        schema: {
          ...tokenRoute('media', 'addViews', 'Adds views that a CDN in front of the files counted'),
          description:
            'One transaction. Views of unknown and deleted clips are left out. A repeat with the same Idempotency-Key ' +
            'adds nothing.',
          headers: Type.Object({ 'idempotency-key': Type.Optional(Type.String()) }),
          body: Batch,
          response: answers(
            200,
            Type.Object({ added: Type.Integer() }),
            [400, 401, 403, 404, 408, 409, 413, 415, 422, 429],
            'Idempotency-Replayed',
          ),
        },
      },
      async (request, reply) => {
        const entries = request.body.map(readEntry(now()))
        const key = readKey(request)
        const fingerprint = createHash('sha256').update(JSON.stringify(entries)).digest()
        const keyed =
          key === undefined ? undefined : { tokenId: tokenOf(request).id, route: 'views' as const, key, fingerprint }
        const { answer, isReplay } = await db
          .transaction()
          .execute((trx) => answerOnce(trx, keyed, now(), async () => ({ added: await addViews(trx, entries) })))
        if (isReplay) reply.header('idempotency-replayed', 'true')
        return { success: answer }
      },
    )
  })
}

const readEntry =
  (now: Date) =>
  ({ id, kind, day, count }: Static<typeof Entry>): DayViews => {
    if (readDay('day', day) > dayOf(now)) throw invalidField('day', 'must not be in the future')
    return { clipId: id, day, page: 0, embed: 0, file: 0, [kind]: count }
  }
