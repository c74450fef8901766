import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { toRegisteredBody, UserShape } from '../../core/users/user-shape.ts'
import type { Deps } from '../../deps.ts'
import { adminOf } from '../../http/admin-only.ts'
import { errorResponses } from '../../http/shapes.ts'
import { subjectOf } from '../../http/subject.ts'
import { deleteUser } from './delete-user.ts'
import { updateUser } from './update-user.ts'
import { UserFields } from './user-input.ts'

const url = '/admin/users/:user_id'
const schema = { tags: ['admin'], security: [{ admin: [] }], params: Type.Object({ user_id: Type.String() }) }

export const adminUserRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url,
    schema: {
      ...schema,
      operationId: 'adminGetUser',
      summary: 'One user, soft-deleted ones too',
      response: { 200: UserShape, ...errorResponses(401, 403, 404) },
    },
    handler: async (request) => toRegisteredBody(subjectOf(request)),
  })

  app.route({
    method: 'PUT',
    url,
    schema: {
      ...schema,
      operationId: 'adminUpdateUser',
      summary: 'Changes a user at once, without any mail',
      description: 'A new password ends all sessions. Metadata is merged at the top level; null removes a key.',
      body: UserFields,
      response: { 200: UserShape, ...errorResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: async (request) => {
      const { id } = subjectOf(request)
      return toRegisteredBody(await updateUser(deps, request.log, adminOf(request), id, request.body))
    },
  })

  app.route({
    method: 'DELETE',
    url,
    schema: {
      ...schema,
      operationId: 'adminDeleteUser',
      summary: 'Deletes a user',
      description:
        'Ends all sessions. With `should_soft_delete` the row stays with its id, role and times, without addresses, metadata or password; the addresses are free for others. Without it all of the user is deleted except the audit log.',
      body: Type.Union([Type.Object({ should_soft_delete: Type.Optional(Type.Boolean()) }), Type.Null()]),
      response: { 200: Type.Object({}), ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request) => {
      const deletion = request.body?.should_soft_delete ? 'soft' : 'hard'
      await deleteUser(deps, request.log, adminOf(request), subjectOf(request).id, deletion)
      return {}
    },
  })
}
