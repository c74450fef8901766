// The outbox for administrators: lists messages, and sends a failed one again.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { inWords } from '@services/common/list-in-words'
import { Type } from 'typebox'
import {
  listMessages,
  MESSAGE_CHANNELS,
  MESSAGE_STATES,
  type VisibleMessage,
} from '../../../core/outbox/messages.store.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { PAGE_HEADERS, PageQuery, pageHeaders, parsePage, reachedPage } from '../../../http/bodies/paging.ts'
import { choiceOf, errorResponses } from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { parseMessageFilter } from './message-filter.ts'
import { noSuchMessage, resendFailedMessage } from './resend-failed-message.ts'

const OneOf = <Name extends string>(names: readonly Name[]) => Type.Unsafe<Name>(Type.String({ enum: [...names] }))
const Time = Type.String({ format: 'date-time' })

const MessageShape = Type.Object(
  {
    id: Type.String(),
    user_id: Type.Union([Type.String(), Type.Null()]),
    channel: OneOf(MESSAGE_CHANNELS),
    kind: Type.String(),
    state: OneOf(MESSAGE_STATES),
    attempts: Type.Integer(),
    last_error: Type.Union([Type.String(), Type.Null()]),
    provider: Type.Union([Type.String(), Type.Null()]),
    provider_message_id: Type.Union([Type.String(), Type.Null()]),
    created_at: Time,
    sent_at: Type.Union([Time, Type.Null()]),
  },
  { title: 'Message' },
)

const schema = { tags: ['admin'], security: [{ admin: [] }] }

export const messagesRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/messages',
    schema: {
      ...schema,
      operationId: 'listMessages',
      summary: 'Outgoing mail and SMS with their state, newest first',
      querystring: Type.Object({
        user_id: Type.Optional(Type.String()),
        state: Type.Optional(choiceOf(MESSAGE_STATES)),
        channel: Type.Optional(choiceOf(MESSAGE_CHANNELS)),
        ...PageQuery,
      }),
      response: {
        200: withHeaders(Type.Object({ messages: Type.Array(MessageShape) }), ...PAGE_HEADERS),
        ...errorResponses(400, 401, 403),
      },
    },
    handler: async (request, reply) => {
      const { user_id: userId, state: givenState, channel: givenChannel } = request.query
      const given = { state: givenState || undefined, channel: givenChannel || undefined }
      const { state, channel } = parseMessageFilter(given, (member, names) =>
        apiError('validation_failed', { message: `${member} must be ${inWords(names, 'or')}` }),
      )
      if (userId && !UUID.test(userId)) throw apiError('validation_failed', { message: 'user_id must be a UUID' })
      // An index serves each filter alone, and a user has few messages.
      const page = parsePage(request.query, { isSearch: state !== undefined && channel !== undefined })
      const { rows: messages, total } = await reachedPage(page, (reached) =>
        deps.reads.current((db) => listMessages(db, { userId, state, channel }, reached)),
      )
      reply.headers(pageHeaders(request.url, page, total))
      return { messages: messages.map(toBody) }
    },
  })

  app.route({
    method: 'POST',
    url: '/admin/messages/:message_id/retry',
    schema: {
      ...schema,
      operationId: 'retryMessage',
      summary: 'Sends a failed message again',
      params: Type.Object({ message_id: Type.String() }),
      response: { 200: MessageShape, ...errorResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: async (request) => {
      const { message_id: id } = request.params
      if (!UUID.test(id)) throw noSuchMessage()
      return toBody(await resendFailedMessage(deps, request.log, adminOf(request), id))
    },
  })
}

const toBody = (message: VisibleMessage) => ({
  ...message,
  created_at: message.created_at.toISOString(),
  sent_at: message.sent_at?.toISOString() ?? null,
})
