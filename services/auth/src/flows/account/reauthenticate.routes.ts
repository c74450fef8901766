import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Deps } from '../../deps.ts'
import { hookedResponses } from '../../http/bodies/shapes.ts'
import { requireLiveSession } from '../../http/caller/authenticate.ts'
import { mailContextOf } from '../../http/pages/mail-context.ts'
import { sendNonce } from './send-nonce.ts'

export const reauthenticateRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/reauthenticate',
    exposeHeadRoute: false,
    schema: {
      operationId: 'reauthenticate',
      tags: ['account'],
      summary: 'Sends a nonce that PUT /user demands for a new password',
      security: [{ user: [] }],
      response: {
        200: Type.Object({ message_id: Type.String({ description: 'Id of the message in GET /admin/messages.' }) }),
        ...hookedResponses(400, 401, 403, 422, 429),
      },
    },
    handler: async (request) => {
      const caller = requireLiveSession(request)
      const { acceptLanguage } = mailContextOf(request, deps.config)
      return { message_id: await sendNonce(deps, request.log, caller, acceptLanguage) }
    },
  })
}
