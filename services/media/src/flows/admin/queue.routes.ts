// /queue: clips that wait and are made, and dead letters. Tests: queue.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { deleteDeadLetter, listDeadLetters, retryDeadLetter } from '../../core/administration/dead-letters.ts'
import { MOST_COUNTED, readQueue } from '../../core/administration/queue-state.ts'
import type { Actor } from '../../core/audit/audit.ts'
import { isUuid } from '../../db/uuid.ts'
import { type Deps, SCHEMA } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { adminOf } from '../../http/authenticate.ts'
import { linkToNext, pageOf, pageQuery, readLimit } from '../../http/cursor.ts'
import { answers, counted, errorResponses, orNull, Time, tokenRoute } from '../../http/shapes.ts'

const TokenName = orNull(Type.Object({ id: Type.String(), name: orNull(Type.String()) }, { title: 'TokenName' }))

const QueueShape = Type.Object(
  {
    queues: Type.Array(
      Type.Object({
        name: Type.String(),
        waiting: Type.Integer({ description: `Jobs that wait, up to ${MOST_COUNTED}.` }),
      }),
    ),
    waiting: Type.Array(Type.Object({ token: TokenName, clips: Type.Integer() }), {
      description: 'Clips that wait by token, null without one; the 100 tokens with the most.',
    }),
    making: Type.Array(
      Type.Object({
        clip_id: orNull(Type.String()),
        token: TokenName,
        progress: Type.Number({ description: '0 to 1.' }),
        machine: orNull(Type.String({ description: 'Host name of the worker.' })),
        started_at: Time,
      }),
      { description: 'Clips that are being made, longest first, up to 100.' },
    ),
  },
  { title: 'Queue' },
)

const DeadLetterShape = Type.Object(
  {
    id: Type.String(),
    kind: Type.Enum(['job', 'delivery'] as const),
    name: Type.String({ description: 'Queue of a job, or event of a delivery.' }),
    at: Time,
    attempts: Type.Integer(),
    reason: orNull(Type.String({ description: 'Null for a job that no worker survived.' })),
    token: TokenName,
    clip_id: orNull(Type.String()),
    receiver: orNull(Type.String({ description: 'Origin of the address of a webhook.' })),
  },
  { title: 'DeadLetter' },
)

const withId = { params: Type.Object({ id: Type.String() }) }
type WithId = { Params: { id: string } }

/** The queue of clips first. */
export const QUEUE_NAMES = SCHEMA.queues.map(({ name }) => name)

export const queueRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { baseUrl } = deps.config.site

  app.get(
    '/queue',
    {
      schema: {
        ...tokenRoute('administration', 'getQueue', 'Clips that wait by token, and those that are being made'),
        response: answers(200, QueueShape, [401, 403, 429]),
      },
    },
    async () => ({ success: await readQueue(deps, QUEUE_NAMES) }),
  )

  app.get(
    '/queue/dead',
    {
      schema: {
        ...tokenRoute('administration', 'listDeadLetters', 'Jobs and deliveries that were given up, newest first'),
        querystring: Type.Object(pageQuery),
        response: answers(200, pageOf(DeadLetterShape), [401, 403, 422, 429], 'Link'),
      },
    },
    async (request, reply) => {
      const { limit, cursor } = request.query
      const { items, nextCursor } = await listDeadLetters(deps, { cursor, limit: readLimit({ limit }) })
      if (nextCursor) reply.header('link', linkToNext(baseUrl, '/queue/dead', { limit, cursor: nextCursor }))
      return { success: { items, next_cursor: nextCursor } }
    },
  )

  app.post<WithId>(
    '/queue/dead/:id/retry',
    {
      schema: {
        ...tokenRoute('administration', 'retryDeadLetter', 'Tries a dead letter again'),
        description: 'A delivery enables its webhook if that was disabled.',
        ...withId,
        response: { 202: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 413, 415, 429) },
      },
    },
    async (request, reply) => {
      await act(request, retryDeadLetter)
      return reply.code(202).send()
    },
  )

  app.delete<WithId>(
    '/queue/dead/:id',
    {
      schema: {
        ...tokenRoute('administration', 'deleteDeadLetter', 'Deletes a dead letter'),
        ...withId,
        response: { 204: counted(Type.Null()), ...errorResponses(400, 401, 403, 404, 408, 413, 415, 429) },
      },
    },
    async (request, reply) => {
      await act(request, deleteDeadLetter)
      return reply.code(204).send()
    },
  )

  async function act(
    request: FastifyRequest<WithId>,
    work: (deps: Deps, by: Actor, id: string) => Promise<boolean>,
  ): Promise<void> {
    const { id } = request.params
    if (!isUuid(id) || !(await work(deps, adminOf(request), id))) throw apiError('not_found')
  }
}
