import type { FastifyInstance } from 'fastify'

/** The address of a request as routes know it. */
export type RewriteUrl = (request: { url?: string }) => string

/**
 * Takes the path of AUTH_API_EXTERNAL_URL off addresses below it: the service answers there as it does below `/`, so that no
 * proxy has to strip it. A path whose first segment is one of our own routes stays, as it cannot be told from that route.
 */
export function withoutBasePath(externalUrl: string): {
  rewriteUrl: RewriteUrl
  noteRoutes(app: FastifyInstance): void
} {
  const base = new URL(externalUrl).pathname.replace(/\/$/, '')
  const [, firstOfBase = ''] = base.split('/')
  let isFree = base !== ''
  return {
    rewriteUrl: ({ url = '/' }) => {
      const [origin = ''] = /^https?:\/\/[^/?#]*/i.exec(url) ?? []
      const path = url.slice(origin.length)
      if (!isFree || !path.startsWith(base) || !/^(?:[/?#]|$)/.test(path.slice(base.length))) return url
      const below = path.slice(base.length)
      return origin + (below.startsWith('/') ? below : `/${below}`)
    },
    noteRoutes(app) {
      app.addHook('onRoute', ({ url }) => {
        if (url.split('/')[1] === firstOfBase) isFree = false
      })
    },
  }
}
