// GET /media/{id}/deliveries: deliveries of the caller's own webhooks about one clip. Tests: clip-deliveries.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { findOwnClip } from '../../core/clips/own-clip.ts'
import { listDeliveriesOfClip } from '../../core/webhooks/deliveries.store.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { addTokenRoutes, tokenOf } from '../../http/authenticate.ts'
import { cutPage, linkToNext, pageOf, pageQuery, readPage } from '../../http/cursor.ts'
import { answers, tokenRoute } from '../../http/shapes.ts'
import { DeliveryShape } from './webhook.routes.ts'

const ClipDeliveryShape = Type.Object(
  { ...DeliveryShape.properties, webhook_id: Type.String() },
  { title: 'ClipDelivery' },
)

export const clipDeliveryRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, config } = deps
  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.get<{ Params: { id: string }; Querystring: { limit?: string; cursor?: string } }>(
      '/media/:id/deliveries',
      {
        schema: {
          ...tokenRoute('webhooks', 'listClipDeliveries', 'Deliveries of your webhooks about a clip, newest first'),
          params: Type.Object({ id: Type.String() }),
          querystring: Type.Object(pageQuery),
          response: answers(200, pageOf(ClipDeliveryShape), [401, 403, 404, 410, 422, 429], 'Link'),
        },
      },
      async (request, reply) => {
        const token = tokenOf(request)
        const { id } = await findOwnClip(deps, token, request.params.id)
        const { after, limit } = readPage(request.query, isUuid)
        const rows = await listDeliveriesOfClip(db, { clipId: id, tokenId: token.id }, { after, limit: limit + 1 })
        const positions = rows.map((row) => ({ ...row, createdAt: row.created_at }))
        const { items, nextCursor } = cutPage(positions, limit)
        if (nextCursor) {
          const query = { limit: request.query.limit, cursor: nextCursor }
          reply.header('link', linkToNext(config.site.baseUrl, `/media/${id}/deliveries`, query))
        }
        return { success: { items, next_cursor: nextCursor } }
      },
    )
  })
}
