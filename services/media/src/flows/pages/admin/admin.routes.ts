import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { Deps } from '../../../deps.ts'
import { requireAdmin } from './admin-page.http.ts'
import { judgeRoutes } from './clips.routes.ts'
import { adminServiceRoutes } from './service.routes.ts'
import { adminTokenRoutes } from './tokens.routes.ts'

/** Pages under /admin. */
export const adminPageRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireAdmin(app, deps)
  await app.register(judgeRoutes, { deps })
  await app.register(adminTokenRoutes, { deps })
  await app.register(adminServiceRoutes, { deps })
}
