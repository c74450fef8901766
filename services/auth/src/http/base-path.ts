import type { FastifyInstance } from 'fastify'

/**
 * Strips the path of AUTH_API_EXTERNAL_URL from requests below it, so that no proxy has to. A path whose first segment
 * is also a route of ours stays, because the two cannot be distinguished.
 */
export function withoutBasePath(externalUrl: string) {
  const base = new URL(externalUrl).pathname.replace(/\/$/, '')
  const [, firstOfBase = ''] = base.split('/')
  let isFree = base !== ''
  return {
    /** Returns the URL of a request as routes know it. */
    rewriteUrl({ url = '/' }: { url?: string }): string {
      const [origin = ''] = /^https?:\/\/[^/?#]*/i.exec(url) ?? []
      const path = url.slice(origin.length)
      if (!isFree || !path.startsWith(base) || !/^(?:[/?#]|$)/.test(path.slice(base.length))) return url
      const below = path.slice(base.length)
      return origin + (below.startsWith('/') ? below : `/${below}`)
    },
    noteRoutes(app: FastifyInstance): void {
      app.addHook('onRoute', ({ url }) => {
        if (url.split('/')[1] === firstOfBase) isFree = false
      })
    },
  }
}
