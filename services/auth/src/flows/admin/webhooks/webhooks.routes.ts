// Receivers of events for administrators, and the log of their deliveries (https://www.standardwebhooks.com).
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { listDeliveries, type ShownDelivery } from '../../../core/webhooks/deliveries.store.ts'
import { findWebhook, listWebhooks, type Webhook } from '../../../core/webhooks/webhooks.store.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { linkTo, parseLimit } from '../../../http/bodies/paging.ts'
import { errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import {
  changeWebhook,
  createWebhook,
  noSuchWebhook,
  removeWebhook,
  renewSecret,
  retryDelivery,
  testWebhook,
} from './manage-webhooks.ts'

const Time = Type.String({ format: 'date-time' })

const members = {
  id: Type.String({ format: 'uuid' }),
  url: Type.String(),
  events: Type.Array(Type.String()),
  enabled: Type.Boolean({ description: 'Events for a disabled receiver wait for three days.' }),
  description: Type.String(),
  created_at: Time,
  disabled_reason: Type.Optional(
    Type.String({
      description:
        'Why the service disabled it: `gone` (the receiver answered 410), `failing` (for five days), `unset` (the ' +
        'settings no longer name it).',
      ...inDocument({ enum: ['gone', 'failing', 'unset'] }),
    }),
  ),
}
const WebhookShape = Type.Object(members, { title: 'Webhook' })
const NewWebhookShape = Type.Object(
  { ...members, secret: Type.String({ description: 'Secret that signs; shown here alone.' }) },
  { title: 'NewWebhook' },
)

const DeliveryShape = Type.Object(
  {
    id: Type.String({ description: 'Id of the event, which is the header `webhook-id`.' }),
    event: Type.String(),
    user_id: Type.Union([Type.String(), Type.Null()]),
    state: Type.String(inDocument({ enum: ['waiting', 'delivered', 'failed'] })),
    attempts: Type.Integer(),
    status: Type.Optional(Type.Integer({ description: 'HTTP status of the last attempt.' })),
    error: Type.Optional(Type.String()),
    next_at: Type.Optional(Time),
    created_at: Time,
  },
  { title: 'Delivery' },
)

const fields = {
  url: Type.Optional(Type.String({ description: 'https address of a public server.' })),
  events: Type.Optional(
    Type.Array(Type.String(), {
      description: '`*`, groups such as `user.*`, or names such as `user.created`; all if absent.',
    }),
  ),
  enabled: Type.Optional(Type.Boolean()),
  description: Type.Optional(Type.String()),
}
const CreateBody = Type.Object({
  ...fields,
  secret: Type.Optional(Type.String({ description: '`whsec_` and base64 of 24 to 64 bytes; generated if absent.' })),
})

const schema = { tags: ['admin'], security: [{ admin: [] }] }
const Params = Type.Object({ webhook_id: Type.String() })
const DeliveryParams = Type.Object({ webhook_id: Type.String(), delivery_id: Type.String() })

export const webhooksRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/webhooks',
    schema: {
      ...schema,
      operationId: 'listWebhooks',
      summary: 'Receivers of events',
      response: { 200: Type.Object({ webhooks: Type.Array(WebhookShape) }), ...errorResponses(401, 403) },
    },
    handler: async () => ({ webhooks: (await listWebhooks(deps.db)).map(toBody) }),
  })

  app.route({
    method: 'POST',
    url: '/admin/webhooks',
    schema: {
      ...schema,
      operationId: 'createWebhook',
      summary: 'Adds a receiver of events; shows its secret once',
      body: CreateBody,
      response: { 201: NewWebhookShape, ...errorResponses(400, 401, 403, 413) },
    },
    handler: async (request, reply) => {
      const { webhook, secret } = await createWebhook(deps, request.log, adminOf(request), request.body)
      return reply.code(201).send({ ...toBody(webhook), secret })
    },
  })

  app.route({
    method: 'GET',
    url: '/admin/webhooks/:webhook_id',
    schema: {
      ...schema,
      operationId: 'getWebhook',
      summary: 'A receiver of events',
      params: Params,
      response: { 200: WebhookShape, ...errorResponses(401, 403, 404) },
    },
    handler: async (request) => toBody(await requireStored(request.params.webhook_id)),
  })

  app.route({
    method: 'PUT',
    url: '/admin/webhooks/:webhook_id',
    schema: {
      ...schema,
      operationId: 'updateWebhook',
      summary: 'Changes a receiver; enabling it forgets its failures',
      params: Params,
      body: Type.Object(fields),
      response: { 200: WebhookShape, ...errorResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: async (request) =>
      toBody(await changeWebhook(deps, request.log, adminOf(request), idOf(request.params), request.body)),
  })

  app.route({
    method: 'DELETE',
    url: '/admin/webhooks/:webhook_id',
    schema: {
      ...schema,
      operationId: 'deleteWebhook',
      summary: 'Deletes a receiver and what waits for it',
      params: Params,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: async (request, reply) => {
      await removeWebhook(deps, request.log, adminOf(request), idOf(request.params))
      return reply.code(204).send(null)
    },
  })

  app.route({
    method: 'POST',
    url: '/admin/webhooks/:webhook_id/rotate-secret',
    schema: {
      ...schema,
      operationId: 'rotateWebhookSecret',
      summary: 'Replaces the secret, which signs beside the new one for a day',
      params: Params,
      response: { 200: NewWebhookShape, ...errorResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: async (request) => {
      const { webhook, secret } = await renewSecret(deps, request.log, adminOf(request), idOf(request.params))
      return { ...toBody(webhook), secret }
    },
  })

  app.route({
    method: 'POST',
    url: '/admin/webhooks/:webhook_id/test',
    schema: {
      ...schema,
      operationId: 'testWebhook',
      summary: 'Sends the event `webhook.test`; its result is in the deliveries',
      params: Params,
      response: { 202: DeliveryShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const queued = await testWebhook(deps, request.log, adminOf(request), idOf(request.params))
      return reply.code(202).send(toDelivery(queued))
    },
  })

  app.route({
    method: 'GET',
    url: '/admin/webhooks/:webhook_id/deliveries',
    schema: {
      ...schema,
      operationId: 'listDeliveries',
      summary: 'Events that a receiver was sent or will be, newest first',
      params: Params,
      querystring: Type.Object({
        limit: Type.Optional(
          Type.String({
            description: 'Entries per answer, at most 1000; larger values are taken as 1000.',
            ...inDocument({ type: 'integer', minimum: 1, default: 50 }),
          }),
        ),
        cursor: Type.Optional(Type.String({ description: 'Cursor in the `Link` of the previous answer.' })),
      }),
      response: {
        200: withHeaders(Type.Object({ deliveries: Type.Array(DeliveryShape) }), 'Link'),
        ...errorResponses(400, 401, 403, 404),
      },
    },
    handler: async (request, reply) => {
      const { limit: given, cursor: after } = request.query
      const { id } = await requireStored(request.params.webhook_id)
      const limit = parseLimit(given)
      if (after && !UUID.test(after)) throw apiError('validation_failed', { message: 'cursor is not valid' })
      const rows = await listDeliveries(deps.db, id, { after, limit: limit + 1 })
      const shown = rows.slice(0, limit)
      const last = shown.at(-1)
      if (rows.length > limit && last) reply.header('link', linkTo(request.url, { cursor: last.id }, 'next'))
      return { deliveries: shown.map(toDelivery) }
    },
  })

  app.route({
    method: 'POST',
    url: '/admin/webhooks/:webhook_id/deliveries/:delivery_id/retry',
    schema: {
      ...schema,
      operationId: 'retryDelivery',
      summary: 'Sends an event again, now and with retries for three days',
      params: DeliveryParams,
      response: { 202: DeliveryShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { delivery_id: id } = request.params
      if (!UUID.test(id)) throw apiError('not_found', { message: 'There is no such delivery' })
      const key = { webhook_id: idOf(request.params), id }
      return reply.code(202).send(toDelivery(await retryDelivery(deps, request.log, adminOf(request), key)))
    },
  })

  async function requireStored(id: string): Promise<Webhook> {
    const webhook = UUID.test(id) ? await findWebhook(deps.db, id) : undefined
    if (!webhook) throw noSuchWebhook()
    return webhook
  }
}

function idOf({ webhook_id: id }: { webhook_id: string }): string {
  if (!UUID.test(id)) throw noSuchWebhook()
  return id
}

function toBody({ id, url, events, enabled, description, created_at, unset_at, disabled_reason }: Webhook) {
  const reason = unset_at ? 'unset' : disabled_reason
  return {
    ...{ id, url, events, enabled: enabled && !unset_at, description, created_at: created_at.toISOString() },
    ...(reason && { disabled_reason: reason }),
  }
}

const toDelivery = (delivery: ShownDelivery) => ({
  ...{ id: delivery.id, event: delivery.event, user_id: delivery.user_id },
  ...{ state: delivery.state, attempts: delivery.attempts, created_at: delivery.created_at.toISOString() },
  ...(delivery.last_status !== null && { status: delivery.last_status }),
  ...(delivery.last_error !== null && { error: delivery.last_error }),
  ...(delivery.next_at !== null && { next_at: delivery.next_at.toISOString() }),
})
