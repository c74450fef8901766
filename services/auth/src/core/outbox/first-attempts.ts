import { ApiError } from '@services/common/errors'
import { regardlessOfDeadline } from '@services/common/request-deadline'
import type { MessageChannel } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import type { Address } from '../users/address.ts'
import { sendingRequest, whileSending } from './sending-request.ts'

/** Attempts that requests make themselves, so that their callers learn of a failure (AUTH_HOOK_SEND_…_SYNC). */
export interface FirstAttempts {
  channels: readonly MessageChannel[]
  /** Makes the only attempt at a queued message. */
  attempt(messageId: string): Promise<void>
}

/** Whether the request that causes a message to the address attempts it. */
export const isAttemptedFirst = (first: FirstAttempts | undefined, { channel }: Address): boolean =>
  first?.channels.includes(channel === 'email' ? 'mail' : 'sms') ?? false

/**
 * Runs `work`, whose transactions queue messages, and then attempts those of the channels. Throws the failure of the
 * first that failed; it is the hook's own error. A worker attempts the messages of a request that died.
 */
export async function withFirstAttempts<Result>(
  first: FirstAttempts | undefined,
  work: () => Promise<Result>,
): Promise<Result> {
  if (!first) return work()
  const queued: string[] = []
  const attempts = { channels: first.channels, queued }
  const result = await whileSending({ ip: sendingRequest()?.ip, attempts }, work)
  const made = await regardlessOfDeadline(() => Promise.allSettled(queued.map((id) => first.attempt(id))))
  const failed = made.find((each) => each.status === 'rejected')
  if (failed) throw callerError(failed.reason)
  return result
}

const callerError = ({ cause }: Error): Error =>
  cause instanceof ApiError ? cause : apiError('unexpected_failure', { cause })
