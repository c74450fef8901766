// Context of a request for the messages that it queues. It holds the address of the client, which a hook gets. It also
// notes the messages that the request attempts itself after the commit (first-attempts.ts).
import { AsyncLocalStorage } from 'node:async_hooks'
import { NOTIFICATION_KINDS } from '../../adapters/mail/kinds.ts'
import type { MessageChannel } from '../../db/tables.ts'

export interface SendingRequest {
  ip: string | undefined
  /** Channels whose messages the request attempts, and the ids of those that it queued. */
  attempts?: { channels: readonly MessageChannel[]; queued: string[] } | undefined
}

const current = new AsyncLocalStorage<SendingRequest>()

export const sendingRequest = (): SendingRequest | undefined => current.getStore()

export const whileSending = <Result>(request: SendingRequest, work: () => Result): Result => current.run(request, work)

/**
 * Notes a message for the request's attempt and returns true if it makes one. Failures of notices concern no request.
 */
export function attemptedByRequest(id: string, channel: MessageChannel, kind: string): boolean {
  const attempts = current.getStore()?.attempts
  if (!attempts?.channels.includes(channel) || Object.hasOwn(NOTIFICATION_KINDS, kind)) return false
  attempts.queued.push(id)
  return true
}
