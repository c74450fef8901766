import { Readable } from 'node:stream'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { audit } from '../../core/audit/audit.ts'
import type { ActName } from '../../core/freshness/acts.ts'
import { requireFresh, requireSecondFactor } from '../../core/freshness/require-fresh.ts'
import { ownBody } from '../../core/sessions/user-answers.ts'
import { exportUser, UserExport } from '../../core/user-export/export-user.ts'
import type { Deps } from '../../deps.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'
import { requireLiveSession } from '../../http/caller/authenticate.ts'
import { givenProof } from '../../http/caller/given-proof.ts'

const EXPORTING: ActName[] = ['exporting the data']

export const exportRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/user/export',
    exposeHeadRoute: false,
    schema: {
      operationId: 'exportUser',
      tags: ['account'],
      summary: 'All that is stored about the user, without secrets. Needs a sign-in of the last 15 minutes',
      security: [{ user: [] }],
      response: { 200: Type.Unsafe<Readable>(UserExport), ...errorResponses(400, 401, 403, 429) },
    },
    handler: async (request, reply) => {
      const caller = requireLiveSession(request)
      const { user, session } = caller
      requireSecondFactor(deps, EXPORTING, user, session)
      // Takes no password: a GET has no body, and an address must not contain one.
      await requireFresh(deps, caller, EXPORTING, givenProof(request, deps.config, null))
      await deps.limits.dataExported(user.id)
      const body = await ownBody(deps, deps.db, user, session.id)
      await audit(deps, deps.db, request.log, { action: 'account_exported', actor: user })
      return reply
        .type('application/json; charset=utf-8')
        .header('content-disposition', 'attachment; filename="account.json"')
        .send(Readable.from(exportUser(deps, body)))
    },
  })
}
