import type { FastifyReply } from 'fastify'
import { apiError } from '../errors.ts'

/** Aborted when the connection ends before the answer was sent. Its reason is for our log: nobody is there to read it. */
export function clientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  const onClose = () => {
    if (!reply.raw.writableFinished) controller.abort(apiError('invalid_request', { cause: 'the client went away' }))
  }
  // It may have gone while its token was looked up.
  if (reply.raw.closed) onClose()
  else reply.raw.once('close', onClose)
  return controller.signal
}
