import { gzipSync } from 'node:zlib'
import type { FastifyInstance } from 'fastify'
import type { Asset, Assets } from './assets.ts'

/**
 * Serves files below a folder such as `/ui/assets/`. Only the current version is kept for ever. A replica that still
 * runs the old code would otherwise leave its file in caches under the new address. Texts are compressed, once: they
 * hold no secret that their length could reveal. Pages do, so they are sent as they are.
 */
export function serveAssets(app: FastifyInstance, folder: string, assets: Assets): void {
  const compressed = new WeakMap<Asset, Buffer>()
  const compress = (asset: Asset): Buffer => {
    const known = compressed.get(asset) ?? gzipSync(asset.body, { level: 9 })
    compressed.set(asset, known)
    return known
  }
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
      reply
        .headers({ 'cache-control': isCurrent ? 'public, max-age=31536000, immutable' : 'no-cache' })
        .type(asset.type)
      if (!isText(asset)) return reply.send(asset.body)
      reply.header('vary', 'Accept-Encoding')
      if (!takesGzip(request.headers['accept-encoding'])) return reply.send(asset.body)
      return reply.header('content-encoding', 'gzip').send(compress(asset))
    },
  )
}

const isText = ({ type }: Asset): boolean => /^text\/|svg/.test(type)

const takesGzip = (accepted: string | undefined): boolean =>
  /(^|[\s,])gzip\s*(,|$|;\s*q=(1|0\.\d*[1-9]))/i.test(accepted ?? '')
