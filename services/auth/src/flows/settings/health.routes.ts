import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { errorResponses } from '../../http/shapes.ts'
import { VERSION } from '../../version.ts'

/** Name of the reference: its client for Go refuses a server with another one. */
const NAME = 'GoTrue'

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
