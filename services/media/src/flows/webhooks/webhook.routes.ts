// /webhooks: a token's webhooks and the log of deliveries (https://www.standardwebhooks.com). A webhook belongs to one
// token and gets only the events of its clips and albums. Tests: test/webhooks.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { isSecret, makeSecret } from '@services/common/webhooks/webhook-secret'
import { Type } from 'typebox'
import { cleanUrl, invalidField } from '../../core/clips/clip-fields.ts'
import { allows } from '../../core/tokens/scopes.ts'
import { replayDelivery } from '../../core/webhooks/deliver-webhook.ts'
import { listDeliveries } from '../../core/webhooks/deliveries.store.ts'
import { sealSecret } from '../../core/webhooks/webhook-secret.ts'
import { deleteWebhook, hasWebhook, insertWebhook, listWebhooks } from '../../core/webhooks/webhooks.store.ts'
import { ADMIN_EVENTS, ALBUM_EVENTS, CLIP_EVENTS, WEBHOOK_EVENTS } from '../../db/tables.ts'
import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { addTokenRoutes, tokenOf } from '../../http/authenticate.ts'
import { cutPage, linkToNext, pageOf, pageQuery, readPage } from '../../http/cursor.ts'
import { answers, counted, errorResponses, orNull, Time, tokenRoute } from '../../http/shapes.ts'

/** Each event is sent to all of them. */
const MAX_WEBHOOKS = 10

const OWN_EVENTS = [...CLIP_EVENTS, ...ALBUM_EVENTS]

const EventShape = Type.Enum(WEBHOOK_EVENTS, { title: 'WebhookEvent' })
const webhookMembers = {
  id: Type.String(),
  url: Type.String(),
  events: Type.Array(EventShape),
  created_at: Time,
  failing_since: orNull(Time),
  disabled_at: orNull(Time),
}
const WebhookShape = Type.Object(webhookMembers, { title: 'Webhook' })
const NewWebhookShape = Type.Object(
  { ...webhookMembers, secret: Type.String({ description: 'Secret value; shown once.' }) },
  { title: 'NewWebhook' },
)

export const DeliveryShape = Type.Object(
  {
    id: Type.String({ description: 'Id of the delivery; the header `webhook-id` is `msg_` and this id.' }),
    type: EventShape,
    payload: Type.Unsafe<object>(Type.Object({}, { additionalProperties: true })),
    state: Type.Enum(['pending', 'delivered', 'failed']),
    attempts: Type.Integer(),
    created_at: Time,
    last_attempt_at: orNull(Time),
    next_attempt_at: orNull(Time),
    last_status: orNull(Type.Integer()),
    last_error: orNull(Type.String()),
  },
  { title: 'Delivery' },
)

const CreateBody = Type.Object({
  url: Type.String({ description: 'http or https URL of a public server.' }),
  events: Type.Optional(
    Type.Array(EventShape, { minItems: 1, maxItems: 10, description: 'All that the token may have if absent.' }),
  ),
  secret: Type.Optional(Type.String({ description: '`whsec_` and base64 of 24 to 64 bytes; generated if absent.' })),
})

const Params = Type.Object({ id: Type.String() })
const DeliveryParams = Type.Object({ id: Type.String(), delivery: Type.String() })

export const webhookRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { db, config } = deps
  await addTokenRoutes(app, deps, { scope: 'write' }, async (part) => {
    part.post(
      '/webhooks',
      {
        schema: {
          ...tokenRoute(
            'webhooks',
            'createWebhook',
            'Registers an address for events of your clips and albums; shows its secret once',
          ),
          body: CreateBody,
          response: answers(201, NewWebhookShape, [400, 401, 403, 408, 413, 415, 422, 429]),
        },
      },
      async (request, reply) => {
        const isAdmin = allows(tokenOf(request), 'admin')
        const { events = isAdmin ? WEBHOOK_EVENTS : OWN_EVENTS, secret = makeSecret() } = request.body
        if (!isAdmin && events.some((event) => ADMIN_EVENTS.some((known) => known === event))) {
          throw invalidField('events', 'may name reports and hidden clips with the scope admin alone')
        }
        const url = await checkedUrl(deps, request.body.url)
        if (!isSecret(secret)) throw invalidField('secret', 'must be whsec_ followed by base64 of 24 to 64 bytes')
        const webhook = {
          id: deps.newId(),
          token_id: tokenOf(request).id,
          url,
          events: [...new Set(events)],
          secret: sealSecret(config.encryptionKey, secret),
          created_at: deps.now(),
        }
        const added = await db.transaction().execute((trx) => insertWebhook(trx, webhook, { most: MAX_WEBHOOKS }))
        if (!added) throw invalidField('url', `is one too many: a token has at most ${MAX_WEBHOOKS} webhooks`)
        reply.code(201).header('cache-control', 'no-store')
        return { success: { ...added, secret } }
      },
    )

    part.delete<{ Params: { id: string } }>(
      '/webhooks/:id',
      {
        schema: {
          ...tokenRoute('webhooks', 'deleteWebhook', 'Deletes a webhook and its deliveries'),
          params: Params,
          response: { 204: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 413, 415, 429) },
        },
      },
      async (request, reply) => {
        const { id } = request.params
        const tokenId = tokenOf(request).id
        if (!isUuid(id) || !(await deleteWebhook(db, { id, tokenId }))) throw apiError('not_found')
        return reply.code(204).send()
      },
    )

    part.post<{ Params: { id: string; delivery: string } }>(
      '/webhooks/:id/deliveries/:delivery/replay',
      {
        schema: {
          ...tokenRoute('webhooks', 'replayDelivery', 'Sends an event again; enables the webhook if it was disabled'),
          params: DeliveryParams,
          response: answers(202, DeliveryShape, [400, 401, 403, 404, 408, 413, 415, 429]),
        },
      },
      async (request, reply) => {
        const { id, delivery } = request.params
        await requireOwn(id, tokenOf(request).id)
        const replayed =
          isUuid(delivery) && (await replayDelivery(deps, { id: delivery, webhookId: id, owner: tokenOf(request).id }))
        if (!replayed) throw apiError('not_found')
        return reply.code(202).send({ success: replayed })
      },
    )
  })

  await addTokenRoutes(app, deps, { scope: 'read' }, async (part) => {
    part.get(
      '/webhooks',
      {
        schema: {
          ...tokenRoute('webhooks', 'listWebhooks', 'Your webhooks'),
          response: answers(200, Type.Object({ items: Type.Array(WebhookShape) }), [401, 403, 429]),
        },
      },
      async (request) => ({ success: { items: await listWebhooks(db, tokenOf(request).id) } }),
    )

    part.get<{ Params: { id: string }; Querystring: { limit?: string; cursor?: string } }>(
      '/webhooks/:id/deliveries',
      {
        schema: {
          ...tokenRoute('webhooks', 'listDeliveries', 'Deliveries of a webhook, newest first'),
          params: Params,
          querystring: Type.Object(pageQuery),
          response: answers(200, pageOf(DeliveryShape), [401, 403, 404, 422, 429], 'Link'),
        },
      },
      async (request, reply) => {
        const { id } = request.params
        await requireOwn(id, tokenOf(request).id)
        const { after, limit } = readPage(request.query, isUuid)
        const rows = await listDeliveries(db, id, { after, limit: limit + 1 })
        const positions = rows.map((row) => ({ ...row, createdAt: row.created_at }))
        const { items, nextCursor } = cutPage(positions, limit)
        if (nextCursor) {
          const query = { limit: request.query.limit, cursor: nextCursor }
          reply.header('link', linkToNext(config.site.baseUrl, `/webhooks/${id}/deliveries`, query))
        }
        return { success: { items, next_cursor: nextCursor } }
      },
    )
  })

  async function requireOwn(id: string, tokenId: string): Promise<void> {
    if (!isUuid(id) || !(await hasWebhook(db, { id, tokenId }))) throw apiError('not_found')
  }
}

/** Checks the address; each connection is checked again. */
async function checkedUrl({ remote }: Pick<Deps, 'remote'>, text: string): Promise<string> {
  const url = cleanUrl('url', text)
  try {
    await remote.checkUrl(url)
    return url
  } catch (error) {
    if (error instanceof ApiError) throw invalidField('url', 'must be on a public server')
    throw error
  }
}
