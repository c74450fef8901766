import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { FactorShape } from '../../core/users/user-shape.ts'
import type { Deps } from '../../deps.ts'
import { adminOf } from '../../http/admin-only.ts'
import { errorResponses, Field } from '../../http/shapes.ts'
import { subjectOf } from '../../http/subject.ts'
import { deleteUserFactor, listUserFactors, updateUserFactor } from './user-factors.ts'

const security = [{ admin: [] }]
const url = '/admin/users/:user_id/factors'
const params = Type.Object({ user_id: Type.String(), factor_id: Type.String() })

export const adminFactorsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url,
    schema: {
      operationId: 'adminListFactors',
      tags: ['admin'],
      summary: "A user's second factors, oldest first",
      security,
      params: Type.Object({ user_id: Type.String() }),
      response: { 200: Type.Array(FactorShape), ...errorResponses(401, 403, 404) },
    },
    handler: async (request) => listUserFactors(subjectOf(request)),
  })

  app.route({
    method: 'PUT',
    url: `${url}/:factor_id`,
    schema: {
      operationId: 'adminUpdateFactor',
      tags: ['admin'],
      summary: 'Renames a second factor, or changes its phone number',
      security,
      params,
      body: Type.Object({ friendly_name: Type.Optional(Field), phone: Type.Optional(Field) }),
      response: { 200: FactorShape, ...errorResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: (request) => {
      const { friendly_name: friendlyName, phone } = request.body
      const update = { userId: subjectOf(request).id, factorId: request.params.factor_id, friendlyName, phone }
      return updateUserFactor(deps, request.log, adminOf(request), update)
    },
  })

  app.route({
    method: 'DELETE',
    url: `${url}/:factor_id`,
    schema: {
      operationId: 'adminDeleteFactor',
      tags: ['admin'],
      summary: 'Removes a second factor, for a user who lost it',
      description: 'Sessions that were raised with it are aal1 again.',
      security,
      params,
      response: { 200: FactorShape, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: (request) => deleteUserFactor(deps, request.log, subjectOf(request).id, request.params.factor_id),
  })
}
