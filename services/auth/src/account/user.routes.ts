import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { callerOf, requireLiveSession } from '../http/authenticate.ts'
import { errorResponses, Field, FreeForm } from '../http/shapes.ts'
import { toUserBody, UserShape } from '../users/user-shape.ts'
import { updateAccount } from './update-account.ts'

const security = [{ user: [] }]

/** GET and PUT /user; in the scope of requireUser. */
export const userRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/user',
    schema: {
      tags: ['account'],
      summary: 'The user of the token',
      security,
      response: { 200: UserShape, ...errorResponses(400, 401, 403) },
    },
    handler: async (request) => {
      const { user, audience } = callerOf(request)
      const wanted = request.headers['x-jwt-aud'] || audience
      if (!audience || wanted !== audience) {
        throw apiError('validation_failed', { message: 'Token audience does not match request audience' })
      }
      return toUserBody(user)
    },
  })

  app.route({
    method: 'PUT',
    url: '/user',
    schema: {
      tags: ['account'],
      summary: 'Changes the password and free-form data of the user',
      security,
      body: Type.Object({
        email: Type.Optional(Field),
        phone: Type.Optional(Field),
        password: Type.Optional(Field),
        nonce: Type.Optional(Field),
        data: Type.Optional(FreeForm),
        app_metadata: Type.Optional(FreeForm),
      }),
      response: { 200: UserShape, ...errorResponses(400, 401, 403, 413, 422, 429) },
    },
    handler: async (request) => {
      const caller = requireLiveSession(request)
      await deps.limits.byAddress(request, 'user')
      const { email, phone, password, nonce, data, app_metadata: appMetadata } = request.body
      const changesAddress =
        (email && email.toLowerCase() !== caller.user.email) ||
        (phone && phone.replace(/^\+/, '') !== caller.user.phone)
      if (changesAddress) {
        throw apiError('validation_failed', {
          message: 'Changing the email address or phone number is not available yet',
        })
      }
      return toUserBody(await updateAccount(deps, request.log, caller, { password, nonce, data, appMetadata }))
    },
  })
}
