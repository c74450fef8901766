import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { VERSION } from '../version.ts'

/** GET /health. Probes use /health/live and /health/ready. */
export const healthRoute: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/health',
    {
      logLevel: 'silent',
      schema: {
        operationId: 'getHealth',
        tags: ['service'],
        summary: 'Name and version',
        response: { 200: Type.Object({ name: Type.String(), version: Type.String() }) },
      },
    },
    async () => ({ name: 'media', version: VERSION }),
  )
}
