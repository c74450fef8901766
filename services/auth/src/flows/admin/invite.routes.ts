import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { FreeForm } from '../../core/users/metadata.ts'
import { toRegisteredBody, UserShape } from '../../core/users/user-shape.ts'
import type { Deps } from '../../deps.ts'
import { adminOf } from '../../http/admin-only.ts'
import { adminAudience } from '../../http/authenticate.ts'
import { mailContextOf } from '../../http/mail-context.ts'
import { errorResponses, NeededField, RedirectQuery } from '../../http/shapes.ts'
import { inviteUser } from './invite-user.ts'

export const inviteRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/invite',
    schema: {
      operationId: 'inviteUser',
      tags: ['admin'],
      summary: 'Invites a user by mail',
      security: [{ admin: [] }],
      querystring: RedirectQuery,
      requestHeaders: ['X-JWT-AUD'],
      body: Type.Object({ email: Type.Optional(NeededField), data: Type.Optional(FreeForm) }),
      response: { 200: UserShape, ...errorResponses(400, 401, 403, 413, 422, 429) },
    },
    handler: async (request) => {
      const { email = '', data = {} } = request.body
      const user = await inviteUser(deps, request.log, adminOf(request), {
        email: parseEmail(email),
        data,
        audience: adminAudience(request, deps.config.jwt),
        context: mailContextOf(request, deps.config),
      })
      return toRegisteredBody(user)
    },
  })
}
