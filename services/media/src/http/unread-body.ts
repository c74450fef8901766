import type { FastifyInstance } from 'fastify'

/** A client that is still sending gets this long to notice the answer; closing at once could cost it the answer. */
const LINGER_MS = 5_000

/**
 * When a request is answered before its body has arrived (refused token, file too large), the rest is read and thrown
 * away for a moment, then the connection ends: nobody uploads 150 MB for nothing.
 */
export function endUnreadBodies(app: FastifyInstance): void {
  app.addHook('onResponse', async ({ raw }) => {
    if (raw.complete || raw.destroyed) return
    // A form's parser that stopped reading must not go on buffering.
    raw.unpipe()
    raw.resume()
    const timer = setTimeout(() => {
      if (!raw.complete) raw.destroy()
    }, LINGER_MS)
    timer.unref()
    raw.once('close', () => clearTimeout(timer))
  })
}
