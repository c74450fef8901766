import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { inWords } from '@services/common/list-in-words'
import { Type } from 'typebox'
import { audit } from '../../core/audit/audit.ts'
import { endOtherSessions, endSession, endSessions } from '../../core/sessions/end-sessions.store.ts'
import { endTokens } from '../../core/users/end-tokens.ts'
import { lockUser } from '../../core/users/users.store.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'
import { callerOf, requireLiveSession } from '../../http/caller/authenticate.ts'

const SCOPES = ['global', 'local', 'others'] as const

/**
 * POST /logout. Refresh tokens of the ended sessions stop working at once; issued access tokens stay valid until they
 * expire.
 */
export const logoutRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/logout',
    schema: {
      operationId: 'signOut',
      tags: ['account'],
      summary: "Ends the user's sessions",
      security: [{ user: [] }],
      querystring: Type.Object({
        scope: Type.Optional(
          Type.String({
            description: 'local: this session, others: all but this.',
            ...inDocument({ enum: SCOPES, default: 'global' }),
          }),
        ),
      }),
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 413) },
    },
    handler: async (request, reply) => {
      const { user, hadSession } = callerOf(request)
      // A token made without a session can only end all of them.
      const sessionId = hadSession ? requireLiveSession(request).session.id : ''
      const wanted = (hadSession && request.query.scope) || 'global'
      const scope = SCOPES.find((each) => each === wanted)
      if (!scope) throw apiError('validation_failed', { message: `scope must be ${inWords(SCOPES, 'or')}` })
      await deps.db.transaction().execute(async (trx) => {
        await lockUser(trx, user.id)
        if (scope === 'local') await endSession(trx, deps.config.sessions, user.id, sessionId)
        else if (scope === 'others') await endOtherSessions(trx, user.id, sessionId)
        else await endSessions(trx, user.id)
        // One of the other sessions may be a thief's, and so may a pending change of address.
        if (scope !== 'local') await endTokens(trx, user.id, 'changes', deps.now())
        await audit(deps, trx, request.log, { action: 'logout', actor: user })
      })
      return reply.code(204).send(null)
    },
  })
}
