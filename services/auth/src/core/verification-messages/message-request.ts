// Requests without a session for a message with a link or code. The request does the same work for every address, known
// or not, and records a claim. A worker then finds the account and sends the message that fits
// (flows/message-requests/). Counting: message-budget.ts, send-gap.ts; mails and SMS: link-mail.ts, code-message.ts;
// sending them again: core/outbox/. Tests: message-budget.test.ts, flows/message-requests/*.test.ts,
// test/equal-work.test.ts.
import type { KeyObject } from 'node:crypto'
import type { QueueDefinition } from '@services/common/queue/queue-definition'
import { seal, unseal } from '@services/common/seal'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import { TEST_MESSAGE_ID } from '../../adapters/test-codes.ts'
import type { Config } from '../../config.ts'
import type { Metadata } from '../../db/tables.ts'
import type { Origin } from '../audit/audit.ts'
import type { Pkce } from '../one-time-tokens/pkce.ts'
import { isAttemptedFirst } from '../outbox/first-attempts.ts'
import { type DelayedJob, notBefore } from '../outbox/job-delay.ts'
import type { OutboxDeps } from '../outbox/outbox.ts'
import type { PasswordAttempts } from '../passwords/password-attempts.ts'
import type { Address } from '../users/address.ts'
import { claimOf, recordClaim } from '../users/address-claims.ts'
import type { MailContext } from './link-mail.ts'
import {
  type BudgetDeps,
  isTestAddress,
  type Recipient,
  withMessagesCounted,
  withResendCounted,
  withSignInCounted,
} from './message-budget.ts'
import { type RequestSettings, requestSettings } from './request-settings.ts'
import { type GapKind, gapKeyOf, type Requester, type SendGapDeps, withinGaps } from './send-gap.ts'

export interface MessageRequest {
  type: 'recovery' | 'sign_in' | 'confirmation' | 'email_change' | 'phone_change'
  /** Id promised to the caller, whether or not a message is sent. */
  messageId: string
  address: Address
  audience: string
  context: MailContext
  /** Origin of audit entries. */
  origin: Origin
  pkce?: Pkce | undefined
  smsChannel?: SmsChannel | undefined
  /** Only for sign_in: whether an unknown address becomes an account, and its user_metadata. */
  createUser?: boolean
  data?: Metadata
  /** Account that the hook before-user-created has admitted; without one the worker asks it. */
  admitted?: { id: string; data: Metadata } | undefined
  /** The address is over its cap: a message goes only to a proven one, with a code too long to be guessed. */
  isOverCap?: boolean
  /** Settings of the instance that received the request. */
  settings: RequestSettings
}

/** Requests take milliseconds; that of a worker that died is retried soon. */
export const MESSAGE_REQUEST_QUEUE: QueueDefinition = {
  name: 'message-requests',
  retryLimit: 100,
  retryDelaySeconds: 1,
  retryDelayMaxSeconds: 60,
  expireInSeconds: 60,
  heartbeatSeconds: 10,
}

/** A request is sealed, because it holds an address. */
export interface MessageRequestJob extends DelayedJob {
  sealed: string
}

/** Whether the message goes to another address than the named one; the worker counts it there. */
export const isChange = ({ type }: Pick<MessageRequest, 'type'>) => type === 'email_change' || type === 'phone_change'

function gapKindOf({ type, address }: Pick<MessageRequest, 'type' | 'address'>): GapKind {
  if (isChange({ type })) return 'resend'
  if (address.channel === 'phone') return 'sms'
  return type === 'confirmation' ? 'confirmation' : 'sign_in_link'
}

interface MessageInput extends Omit<MessageRequest, 'messageId' | 'settings' | 'admitted'>, Requester {
  clientAddress?: string | undefined
  /** Asks about the account that an unknown address would get, and returns its id. Throws a refusal. */
  admit?: (data: Metadata) => Promise<string | undefined>
}

interface RequestDeps extends BudgetDeps, SendGapDeps, OutboxDeps {
  config: Config
  codeKey: KeyObject
  passwordAttempts: Pick<PasswordAttempts, 'knownClient'>
}

/**
 * Queues the request for a worker. `answer` handles one of a test address at once, because its known code follows
 * immediately, and one whose caller learns of a failed first attempt.
 * Throws while the address is within its gap or the budget of all users is used up.
 */
export async function requestMessage(
  deps: RequestDeps,
  { clientAddress, network, trustedNetwork, admit, ...input }: MessageInput,
  answer?: (request: MessageRequest) => Promise<void>,
): Promise<string> {
  const { address, type, audience, data = {} } = input
  // The claim comes before any refusal: even a refused request of the owner voids a stranger's registration.
  let claimed: Metadata = {}
  if (type === 'sign_in' || type === 'recovery') {
    const claim = claimOf(deps, { address, passwordHash: null, data: type === 'sign_in' ? data : {} })
    claimed = (await deps.db.transaction().execute((trx) => recordClaim(trx, claim))).data
  }
  const gap = gapKindOf(input)
  const request: MessageRequest = { ...input, messageId: deps.newId(), settings: requestSettings(deps.config) }
  const isTest = isTestAddress(deps, address)
  const isAnsweredHere = isTest || isAttemptedFirst(deps.firstAttempts, address)
  const queueRequest = async (isOverCap = false) => {
    // Over the cap no account is made.
    const id = isOverCap ? undefined : await admit?.(claimed)
    if (id !== undefined) request.admitted = { id, data: claimed }
    if (isAnsweredHere && answer) return answer({ ...request, isOverCap })
    const sealed = seal(deps.outboxKey, { ...request, isOverCap })
    const job: MessageRequestJob = { sealed, notBefore: notBefore(deps) }
    return deps.db.transaction().execute((trx) => deps.queue.send(trx, MESSAGE_REQUEST_QUEUE.name, job))
  }
  const identifier = `${audience}\0${address.value}`
  const client = isChange(input)
    ? undefined
    : await deps.passwordAttempts.knownClient({ identifier, address: clientAddress })
  const asked: Recipient = { ...address, network: trustedNetwork }
  const recipient: Recipient = client === undefined ? asked : { ...asked, share: { client } }
  const queueSignIn = (isOverCap: boolean) =>
    isOverCap ? withinGaps(deps, [{ kind: 'over_cap', key: address.value }], () => queueRequest(true)) : queueRequest()
  await withinGaps(deps, [{ kind: gap, key: gapKeyOf(deps, address, { ...input, network }) }], () => {
    if (isChange(request)) return withResendCounted(deps, address, queueRequest)
    if (gap === 'sign_in_link' || type === 'sign_in') return withSignInCounted(deps, recipient, queueSignIn)
    return withMessagesCounted(deps, [recipient], queueRequest)
  })
  return isTest && address.channel === 'phone' ? TEST_MESSAGE_ID : request.messageId
}

/** Opens the request of a job. Throws a TemporaryFailure if only a worker with another secret can. */
export function openRequest({ outboxKey }: OutboxDeps, { sealed }: MessageRequestJob): MessageRequest {
  try {
    return unseal<MessageRequest>(outboxKey, sealed)
  } catch (error) {
    throw new TemporaryFailure('the request was sealed under another JWT_SECRET', { cause: error })
  }
}
