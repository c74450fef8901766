import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { FreeForm } from '../../core/users/metadata.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { errorResponses } from '../../http/bodies/shapes.ts'
import { adminOf } from '../../http/caller/admin-only.ts'
import { beginTest, readTest } from './provider-test.ts'

const schema = { tags: ['admin'], security: [{ admin: [] }] }

const EmailShape = Type.Object({ email: Type.String(), verified: Type.Boolean(), primary: Type.Boolean() })

const TestShape = Type.Object(
  {
    state: Type.String(inDocument({ enum: ['waiting', 'succeeded', 'failed'] })),
    provider: Type.Optional(Type.String()),
    identity: Type.Optional(FreeForm),
    emails: Type.Optional(Type.Array(EmailShape, { description: 'All addresses that the provider reported.' })),
    error: Type.Optional(
      Type.Object({
        code: Type.String(),
        message: Type.String(),
        reason: Type.Optional(Type.String({ description: 'Cause, for the administrator alone.' })),
      }),
    ),
  },
  { title: 'ProviderTest' },
)

export const providerTestsRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/admin/providers/:provider/test',
    schema: {
      ...schema,
      operationId: 'beginProviderTest',
      summary: 'Begins a sign-in that shows its account and creates neither user nor session',
      params: Type.Object({ provider: Type.String() }),
      response: {
        201: Type.Object({
          id: Type.String({ format: 'uuid' }),
          url: Type.String({ description: 'Address that the first browser to open it signs in at.' }),
          expires_at: Type.String({ format: 'date-time' }),
        }),
        ...errorResponses(400, 401, 403, 413),
      },
    },
    handler: async (request, reply) => {
      const begun = await beginTest(deps, request.log, adminOf(request), request.params.provider)
      return reply.code(201).send({ id: begun.id, url: begun.url, expires_at: begun.expiresAt.toISOString() })
    },
  })

  app.route({
    method: 'GET',
    url: '/admin/providers/tests/:test_id',
    schema: {
      ...schema,
      operationId: 'getProviderTest',
      summary: 'The outcome of a test of a provider',
      description:
        '`waiting` until a browser has come back from the provider, also for an unknown id. An outcome is kept ten minutes past `expires_at`. `identity` is what a sign-in would store.',
      params: Type.Object({ test_id: Type.String() }),
      response: { 200: TestShape, ...errorResponses(401, 403, 404) },
    },
    handler: async (request) => {
      const { test_id: id } = request.params
      if (!UUID.test(id)) throw apiError('not_found', { message: 'There is no such test' })
      const test = await readTest(deps, id)
      if (!test) return { state: 'waiting' }
      return { state: 'error' in test ? 'failed' : 'succeeded', ...test }
    },
  })
}
