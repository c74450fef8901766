import type { FastifyInstance } from 'fastify'

/**
 * Ends the connection of an answer that has begun and of which no byte is taken for `ms`. One that is taken slowly goes
 * on: Node winds the clock up again whenever bytes left its buffer. After the answer the keep-alive limit takes over.
 */
export function endStalledAnswers(app: FastifyInstance, ms: number): void {
  app.addHook('onSend', (_request, { raw }, payload, done) => {
    raw.setTimeout(ms, () => raw.destroy())
    done(null, payload)
  })
}
