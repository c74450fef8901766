// The outbox for administrators: lists messages, and sends a failed one again.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { inWords } from '@services/common/list-in-words'
import { Type } from 'typebox'
import { withAsciiDomain } from '../../../adapters/mail/email-address.ts'
import {
  listMessages,
  listMessagesAfter,
  MESSAGE_CHANNELS,
  MESSAGE_STATES,
  type VisibleMessage,
} from '../../../core/outbox/messages.store.ts'
import { normalisePhone } from '../../../core/users/phone-number.ts'
import { listIdsByAddress } from '../../../core/users/users.store.ts'
import { UUID } from '../../../db/uuid.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { CursorQuery, formatCursor, isWalk, parseCursor } from '../../../http/bodies/cursor.ts'
import {
  linkTo,
  PAGE_HEADERS,
  PageQuery,
  pageHeaders,
  parseLimit,
  parsePage,
  reachedPage,
} from '../../../http/bodies/paging.ts'
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
      description:
        'By cursor, when `limit` or `cursor` is given without `page` and `per_page`, the `Link` to the next answer has its cursor.',
      querystring: Type.Object({
        user_id: Type.Optional(Type.String()),
        state: Type.Optional(choiceOf(MESSAGE_STATES)),
        channel: Type.Optional(choiceOf(MESSAGE_CHANNELS)),
        kind: Type.Optional(Type.String({ description: 'Such as `confirmation`, `recovery` or `magic_link`.' })),
        address: Type.Optional(
          Type.String({
            description: 'Present e-mail address or number of the user they are for, whole and in any case.',
          }),
        ),
        ...PageQuery,
        ...CursorQuery,
      }),
      response: {
        200: withHeaders(Type.Object({ messages: Type.Array(MessageShape) }), ...PAGE_HEADERS),
        ...errorResponses(400, 401, 403),
      },
    },
    handler: async (request, reply) => {
      const { query, url } = request
      const { user_id: userId, state: givenState, channel: givenChannel, kind, address } = query
      const given = { state: givenState || undefined, channel: givenChannel || undefined }
      const { state, channel } = parseMessageFilter(given, (member, names) =>
        apiError('validation_failed', { message: `${member} must be ${inWords(names, 'or')}` }),
      )
      if (userId && !UUID.test(userId)) throw apiError('validation_failed', { message: 'user_id must be a UUID' })
      if ([kind, address].some((text) => text?.includes('\0'))) {
        throw apiError('validation_failed', { message: 'kind and address must not contain NUL' })
      }
      const filterFor = async (db: Deps['db']) => ({ userIds: await idsOf(db, userId, address), state, channel, kind })
      if (isWalk(query)) {
        const limit = parseLimit(query.limit)
        const after = query.cursor ? parseCursor(query.cursor) : undefined
        const { messages, next } = await deps.reads.current(async (db) =>
          listMessagesAfter(db, await filterFor(db), { limit, after }),
        )
        if (next) reply.header('link', linkTo(url, { cursor: formatCursor(next) }, 'next'))
        return { messages: messages.map(toBody) }
      }
      // An index serves each filter alone, and a user has few messages.
      const isSearch = [state, channel, kind].filter((each) => each).length > 1
      const page = parsePage(query, { isSearch })
      const { rows: messages, total } = await reachedPage(page, (reached) =>
        deps.reads.current(async (db) => listMessages(db, await filterFor(db), reached)),
      )
      reply.headers(pageHeaders(url, page, total))
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

/** Users that both name; undefined where neither is given. */
async function idsOf(db: Deps['db'], userId: string | undefined, address: string | undefined) {
  if (!address) return userId ? [userId] : undefined
  const email = withAsciiDomain(address).toLowerCase()
  const ids = await listIdsByAddress(db, { email, phone: normalisePhone(address) })
  return ids.filter((id) => !userId || id === userId.toLowerCase())
}

const toBody = (message: VisibleMessage) => ({
  ...message,
  created_at: message.created_at.toISOString(),
  sent_at: message.sent_at?.toISOString() ?? null,
})
