import type { FastifyReply } from 'fastify'
import { apiError } from '../errors.ts'

/** Aborts when the connection ends before the answer was sent. The reason appears in our log only. */
export function clientGone(reply: FastifyReply): AbortSignal {
  const controller = new AbortController()
  const onClose = () => {
    if (!reply.raw.writableFinished) controller.abort(apiError('invalid_request', { cause: 'the client disconnected' }))
  }
  // The client may have disconnected while its token was looked up.
  if (reply.raw.closed) onClose()
  else reply.raw.once('close', onClose)
  return controller.signal
}
