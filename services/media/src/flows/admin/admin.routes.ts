// Endpoints of administrators for the service as a whole, all with the scope `admin`. Tokens and decisions about clips
// have flows of their own; pages: ../pages/admin.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Deps } from '../../deps.ts'
import { requireToken } from '../../http/authenticate.ts'
import { auditRoutes } from './audit.routes.ts'
import { queueRoutes } from './queue.routes.ts'
import { settingsRoutes } from './settings.routes.ts'
import { storageRoutes } from './storage.routes.ts'

export const adminRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireToken(app, deps, { scope: 'admin' })
  app.addHook('onRequest', async (request, reply) => {
    await deps.limits.count(request, reply, 'read')
    reply.header('cache-control', 'no-store')
  })
  await app.register(queueRoutes, { deps })
  await app.register(storageRoutes, { deps })
  await app.register(settingsRoutes, { deps })
  await app.register(auditRoutes, { deps })
}
