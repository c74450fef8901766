import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { endAllSessions, endOneSession, sessionNotFound } from '../../core/sessions/end-session.ts'
import { listLiveSessions, SessionInfoShape } from '../../core/sessions/session-info.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { adminOf } from '../../http/admin-only.ts'
import { errorResponses } from '../../http/shapes.ts'
import { subjectOf } from '../../http/subject.ts'

const url = '/admin/users/:user_id/sessions'
const schema = { tags: ['admin'], security: [{ admin: [] }], params: Type.Object({ user_id: Type.String() }) }

export const adminSessionsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url,
    schema: {
      ...schema,
      operationId: 'adminListSessions',
      summary: "A user's sessions, newest first",
      response: { 200: Type.Array(SessionInfoShape), ...errorResponses(401, 403, 404) },
    },
    handler: (request) => listLiveSessions(deps, subjectOf(request).id),
  })

  app.route({
    method: 'DELETE',
    url,
    schema: {
      ...schema,
      operationId: 'adminEndSessions',
      summary: 'Signs a user out everywhere',
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      await endAllSessions(deps, request.log, adminOf(request), subjectOf(request))
      return reply.code(204).send(null)
    },
  })

  app.route({
    method: 'DELETE',
    url: `${url}/:session_id`,
    schema: {
      ...schema,
      operationId: 'adminEndSession',
      summary: 'Ends one session of a user',
      params: Type.Object({ user_id: Type.String(), session_id: Type.String() }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      const { session_id: sessionId } = request.params
      if (!UUID.test(sessionId)) throw sessionNotFound()
      await endOneSession(deps, request.log, adminOf(request), subjectOf(request), sessionId)
      return reply.code(204).send(null)
    },
  })
}
