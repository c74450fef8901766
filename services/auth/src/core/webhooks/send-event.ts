// Sends an event to its receiver, signed.
import type { openEgress } from '@services/common/egress/open-egress'
import type { Logger } from '@services/common/telemetry/logger'
import { type AttemptResult, resultOfStatus } from '@services/common/webhooks/attempt-result'
import { signMessage } from '@services/common/webhooks/sign-message'
import type { Encryption } from '../keys/encryption.ts'
import type { Claimed } from './claims.store.ts'
import { signingSecrets } from './secrets.ts'

export interface SendDeps {
  now: () => Date
  log: Logger
  encryption: Encryption
  /** Client of receivers alone, which share its slots with no other request. */
  receivers: Pick<ReturnType<typeof openEgress>, 'fetch'>
}

/** Longest answer that is read; a receiver has nothing to say. */
const MAX_ANSWER_BYTES = 64 * 1024

/** Error of an event that was not sent because of a fault of our own. */
export const OWN_FAULT = 'not_sent'

/** Never throws for anything the receiver does. */
export async function sendEvent(deps: SendDeps, attempt: Claimed, timeoutMs: number): Promise<AttemptResult> {
  let message: { body: string; headers: Record<string, string> }
  try {
    message = await signed(deps, attempt)
  } catch (err) {
    deps.log.error({ err, webhookId: attempt.webhook_id }, 'event not signed')
    return { status: null, error: OWN_FAULT }
  }
  try {
    const bounds = { timeoutMs, maxBytes: MAX_ANSWER_BYTES }
    const { status } = await deps.receivers.fetch(attempt.url, { method: 'POST', ...message }, bounds)
    return resultOfStatus(status)
  } catch (error) {
    return { status: null, error: failureOf(error) }
  }
}

async function signed(deps: SendDeps, attempt: Claimed) {
  const { id, event: type, data, created_at: createdAt, webhook_id, sealed_secrets } = attempt
  const body = JSON.stringify({ type, timestamp: createdAt.toISOString(), data })
  const secrets = signingSecrets(deps, { id: webhook_id, sealed_secrets })
  return { body, headers: await signMessage(secrets, { id, body, timestamp: deps.now() }) }
}

/** Kind of a failure, for admins: the guard's texts reveal the network. */
function failureOf(error: unknown): string {
  const { name, code } = error as { name?: string; code?: string }
  if (name === 'TimeoutError') return 'timeout'
  if (name === 'AnswerTooLarge') return 'answer_too_large'
  return code === 'egress_refused' ? 'forbidden_address' : 'unreachable'
}
