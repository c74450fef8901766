// HTTP that routes share: the caller, limits, pages, bodies. It knows no flow.
import type { FastifyInstance } from 'fastify'

/** Strips AUTH_API_EXTERNAL_URL's path, so no proxy has to; one that begins like a route is ambiguous and stays. */
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
    recordRoutes(app: FastifyInstance): void {
      app.addHook('onRoute', ({ url }) => {
        if (url.split('/')[1] === firstOfBase) isFree = false
      })
    },
  }
}
