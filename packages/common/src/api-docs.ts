import swagger from '@fastify/swagger'
import swaggerUi from '@fastify/swagger-ui'
import type { FastifyInstance } from 'fastify'

export interface ApiDocs {
  title: string
  version: string
  description: string
  // biome-ignore lint/suspicious/noExplicitAny: OpenAPI's own type is a dependency of the plugin, not ours
  securitySchemes: Record<string, any>
}

/** `GET /openapi.json`, made from the routes' schemas, and a readable `/docs`. Call before routes are registered. */
export async function documentApi(app: FastifyInstance, docs: ApiDocs): Promise<void> {
  await app.register(swagger, {
    openapi: {
      openapi: '3.1.0',
      info: { title: docs.title, version: docs.version, description: docs.description },
      components: { securitySchemes: docs.securitySchemes },
    },
  })
  app.get('/openapi.json', { schema: { hide: true } }, async () => app.swagger())
  await app.register(swaggerUi, {
    routePrefix: '/docs',
    staticCSP: true,
    uiConfig: { docExpansion: 'list', deepLinking: true },
  })
}
