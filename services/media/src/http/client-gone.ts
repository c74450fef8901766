import type { FastifyReply } from 'fastify'
import { apiError } from '../errors.ts'

/** Aborted when the connection ends before the answer was sent. Its reason is for our log: nobody is there to read it. */
export function clientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  reply.raw.once('close', () => {
    if (!reply.raw.writableFinished) controller.abort(apiError('invalid_request', { cause: 'the client went away' }))
  })
  return controller.signal
}
