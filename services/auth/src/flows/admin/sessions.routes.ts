import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { endAllSessions, endOneSession, sessionNotFound } from '../../core/sessions/end-session.ts'
import { listLiveSessions, SessionInfoShape } from '../../core/sessions/session-info.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { adminOf } from '../../http/admin-only.ts'
import { errorResponses } from '../../http/shapes.ts'
import { subjectOf } from '../../http/subject.ts'

const security = [{ admin: [] }]
const params = Type.Object({ user_id: Type.String() })

export const adminSessionsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/admin/users/:user_id/sessions',
    schema: {
      operationId: 'adminListSessions',
      tags: ['admin'],
      summary: "A user's sessions, newest first",
      security,
      params,
      response: { 200: Type.Array(SessionInfoShape), ...errorResponses(401, 403, 404) },
    },
    handler: (request) => listLiveSessions(deps, subjectOf(request).id),
  })

  app.route({
    method: 'DELETE',
    url: '/admin/users/:user_id/sessions',
    schema: {
      operationId: 'adminEndSessions',
      tags: ['admin'],
      summary: 'Signs a user out everywhere',
      security,
      params,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request, reply) => {
      await endAllSessions(deps, request.log, adminOf(request), subjectOf(request))
      return reply.code(204).send(null)
    },
  })

  app.route({
    method: 'DELETE',
    url: '/admin/users/:user_id/sessions/:session_id',
    schema: {
      operationId: 'adminEndSession',
      tags: ['admin'],
      summary: 'Ends one session of a user',
      security,
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
