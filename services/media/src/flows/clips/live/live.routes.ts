// GET /media/events: all clips of a token as server-sent events. Tests: live.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { ownerOf } from '../../../core/lists/read-filter.ts'
import type { Deps } from '../../../deps.ts'
import { requireToken, tokenOf } from '../../../http/authenticate.ts'
import { counted, errorResponses, tokenRoute } from '../../../http/shapes.ts'
import { createEventSender, EventStream, isWoken, RETRY } from '../event-sender.http.ts'
import { createLiveStreams, type LiveStream } from './live-streams.ts'

export const liveRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const streams = createLiveStreams(deps)
  const sender = createEventSender(app, deps)

  requireToken(app, deps, { scope: 'read' })
  app.addHook('onRequest', (request, reply) => deps.limits.count(request, reply, 'read'))
  app.get(
    '/media/events',
    {
      // HEAD of a stream would have to wait for its end.
      exposeHeadRoute: false,
      schema: {
        ...tokenRoute('media', 'watchAllMedia', 'Changes of all your clips as server-sent events'),
        description:
          'Open it before you read a list, or with `after` of an earlier stream: it begins with this moment.',
        headers: Type.Object({
          'last-event-id': Type.Optional(
            Type.String({ description: 'Resumes after this id within ten minutes; else the first event is `reset`.' }),
          ),
        }),
        querystring: Type.Object({
          after: Type.Optional(
            Type.String({ description: 'The same for a client that cannot send the header; the header counts first.' }),
          ),
          token: Type.Optional(
            Type.String({ description: 'For admins: clips of one token, or `none` for clips without a token.' }),
          ),
        }),
        response: {
          200: counted(
            EventStream(
              'Events `created`, `processing`, `ready`, `failed`, `updated` with the clip as data, `deleted` with its id. ' +
                '`reset`: more has changed than is reported, so read the list again.',
            ),
          ),
          ...errorResponses(401, 403, 422, 429),
        },
      },
    },
    async (request, reply) => {
      const token = tokenOf(request)
      const clipsOf = ownerOf(token, request.query.token)
      const lastId = request.headers['last-event-id'] ?? request.query.after
      return sender.send(reply, token.id, async ({ signal, end }) => {
        const { sessionHash } = request
        const stream = await streams.open({ tokenId: token.id, sessionHash, clipsOf, onRefusal: end }, lastId)
        // Not in the generator: one that was never read from would not run to its end.
        signal.addEventListener('abort', stream.close, { once: true })
        if (signal.aborted) stream.close()
        return writeBlocks(stream, { signal, heartbeatMs: deps.timeLimits.heartbeatMs })
      })
    },
  )
}

/** A position after each idle `heartbeatMs` finds dead connections, and lets a client of a quiet stream resume. */
async function* writeBlocks(
  stream: LiveStream,
  { signal, heartbeatMs }: { signal: AbortSignal; heartbeatMs: number },
): AsyncGenerator<string> {
  yield RETRY
  while (!signal.aborted) {
    const block = stream.take()
    if (block !== undefined) yield block
    else if (!(await isWoken(heartbeatMs, stream.next(), signal))) yield stream.position()
  }
}
