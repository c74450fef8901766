import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { toRegisteredBody, UserShape } from '../../core/users/user-shape.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { adminOf } from '../../http/admin-only.ts'
import { adminAudience } from '../../http/authenticate.ts'
import { errorResponses } from '../../http/shapes.ts'
import { createUser } from './create-user.ts'
import { type NewUser, NewUserFields } from './user-input.ts'

/** POST /admin/users, and the specification's path with an id of the caller's choice; in the scope of requireAdmin. */
export const createUserRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const schema = {
    tags: ['admin'],
    description:
      'Needs an e-mail address or a phone number. Sends no message: an address counts as proven where `email_confirm` or `phone_confirm` is true, and otherwise waits for a link or code that is asked for later. A password need not be strong; without `password` and `password_hash` the user has none and signs in by link or code. A duplicate is 422: `email_exists`, `phone_exists`, or `user_already_exists` for the id.',
    security: [{ admin: [] }],
    body: NewUserFields,
    requestHeaders: ['X-JWT-AUD'],
    response: { 200: UserShape, ...errorResponses(400, 401, 403, 413, 422) },
  }

  app.route({
    method: 'POST',
    url: '/admin/users',
    schema: { ...schema, operationId: 'adminCreateUser', summary: 'Creates a user' },
    handler: (request) => create(request, request.body),
  })

  app.route({
    method: 'POST',
    url: '/admin/users/:user_id',
    schema: {
      ...schema,
      operationId: 'adminCreateUserWithId',
      summary: 'Creates a user with this id',
      params: Type.Object({ user_id: Type.String() }),
      response: { ...schema.response, ...errorResponses(404) },
    },
    handler: (request) => {
      const { user_id: id } = request.params
      if (request.body.id !== undefined && request.body.id !== id) {
        throw apiError('validation_failed', { message: 'The id of the body is not that of the path' })
      }
      return create(request, { ...request.body, id })
    },
  })

  async function create(request: FastifyRequest, body: NewUser) {
    const aud = body.aud || adminAudience(request, deps.config.jwt)
    return toRegisteredBody(await createUser(deps, request.log, adminOf(request), { ...body, aud }))
  }
}
