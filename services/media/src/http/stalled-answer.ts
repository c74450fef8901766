import type { FastifyInstance } from 'fastify'

/** Ends a connection that takes no byte of an answer for `ms`; any byte restarts the timer, so slow readers stay. */
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
