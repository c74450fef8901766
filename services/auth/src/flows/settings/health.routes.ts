import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorResponses } from '../../http/shapes.ts'
import { VERSION } from '../../version.ts'

/** The product that clients were written for; their libraries for Go refuse a server of another name. */
const NAME = 'GoTrue'

/** GET /health, the client's probe: version and name, without touching the database (that is /health/ready). */
export const healthRoute: FastifyPluginAsyncTypebox = async (app) => {
  app.route({
    method: 'GET',
    url: '/health',
    logLevel: 'silent',
    schema: {
      operationId: 'getHealth',
      tags: ['service'],
      summary: 'Whether the service answers, and its version',
      response: {
        200: Type.Object({ version: Type.String(), name: Type.String(), description: Type.String() }),
        ...errorResponses(),
      },
    },
    handler: async () => ({
      version: VERSION,
      name: NAME,
      description: 'User management and authentication service',
    }),
  })
}
