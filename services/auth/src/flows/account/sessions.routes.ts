import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { endOneSession, sessionNotFound } from '../../core/sessions/end-session.ts'
import { listLiveSessions, SessionInfoShape } from '../../core/sessions/session-info.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'
import { callerOf, requireLiveSession } from '../../http/caller/authenticate.ts'

const security = [{ user: [] }]

const OwnSessionShape = Type.Object(
  { ...SessionInfoShape.properties, current: Type.Boolean({ description: 'Whether it is the session of the token.' }) },
  { title: 'OwnSessionInfo' },
)

export const ownSessionsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/user/sessions',
    schema: {
      operationId: 'listSessions',
      tags: ['account'],
      summary: "The user's sessions, newest first",
      security,
      response: { 200: Type.Array(OwnSessionShape), ...errorResponses(400, 401, 403) },
    },
    handler: async (request) => {
      const { user, session: current } = callerOf(request)
      const sessions = await listLiveSessions(deps, user.id)
      return sessions.map((session) => ({ ...session, current: session.id === current?.id }))
    },
  })

  app.route({
    method: 'DELETE',
    url: '/user/sessions/:session_id',
    schema: {
      operationId: 'endSession',
      tags: ['account'],
      summary: 'Ends one session of the user, the current one too',
      security,
      params: Type.Object({ session_id: Type.String() }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { user } = requireLiveSession(request)
      const { session_id: sessionId } = request.params
      if (!UUID.test(sessionId)) throw sessionNotFound()
      await endOneSession(deps, request.log, user, user, sessionId)
      return reply.code(204).send(null)
    },
  })
}
