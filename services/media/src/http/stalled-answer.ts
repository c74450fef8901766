import type { FastifyInstance } from 'fastify'

/**
 * Ends the connection of an answer that has begun and of which no byte is taken for `ms`. One that is taken slowly goes
 * on: Node winds the clock up again whenever bytes left its buffer. After the answer the keep-alive limit takes over.
 */
export function endStalledAnswers(app: FastifyInstance, ms: number): void {
  app.addHook('onRequest', (_request, { raw }, done) => {
    // The clock is the connection's: it may still run for the answer before, while this one is being worked on.
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
