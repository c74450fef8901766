import type { FastifyInstance } from 'fastify'
import type { Assets } from './assets.ts'

/**
 * Serves files below a folder such as `/ui/assets/`. Only the current version is kept for ever. A replica that still
 * runs the old code would otherwise leave its file in caches under the new address.
 */
export function serveAssets(app: FastifyInstance, folder: string, assets: Assets): void {
  app.get<{ Params: { '*': string }; Querystring: { v?: unknown; is?: unknown } }>(
    `${folder}*`,
    { schema: { hide: true }, logLevel: 'silent' },
    async (request, reply) => {
      const asset = assets.find(request.params['*'])
      const { v, is = v } = request.query
      if (!asset) return reply.callNotFound()
      const isCurrent = is === asset.version
      // The import of a module of another version.
      if (!isCurrent && request.query.is !== undefined) return reply.header('cache-control', 'no-store').callNotFound()
      return reply
        .headers({ 'cache-control': isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache' })
        .type(asset.type)
        .send(asset.body)
    },
  )
}
