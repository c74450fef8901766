import type { FastifyInstance } from 'fastify'

/**
 * When a request is answered before its body has arrived (refused token, file too large), the rest is read and thrown
 * away for `ms`, then the connection ends: nobody uploads 150 MB for nothing.
 */
export function endUnreadBodies(app: FastifyInstance, ms: number): void {
  app.addHook('onResponse', async ({ raw }) => {
    if (raw.complete || raw.destroyed) return
    // A form's parser that stopped reading must not go on buffering.
    raw.unpipe()
    raw.resume()
    const timer = setTimeout(() => {
      if (!raw.complete) raw.destroy()
    }, ms)
    timer.unref()
    raw.once('close', () => clearTimeout(timer))
  })
}
