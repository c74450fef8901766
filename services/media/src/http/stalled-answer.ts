import type { FastifyInstance } from 'fastify'

/**
 * Ends the connection when the client takes no byte of an answer for `ms`. A slow reader is not cut off: Node restarts
 * the timer whenever bytes leave its buffer. After the answer the keep-alive limit takes over.
 */
export function endStalledAnswers(app: FastifyInstance, ms: number): void {
  app.addHook('onRequest', (_request, { raw }, done) => {
    // The timer belongs to the connection: it may still run for the previous answer.
    raw.on('timeout', () => {
      if (raw.headersSent) raw.destroy()
    })
    done()
  })
  app.addHook('onSend', (_request, { raw }, payload, done) => {
    raw.setTimeout(ms)
    done(null, payload)
  })
}
