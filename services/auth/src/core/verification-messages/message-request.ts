// A message asked for without a session. The one rule: the request does the same work for every address, known or not, and notes
// a claim to it; a worker then finds the account and sends what fits. A test number is answered at once.
import type { KeyObject } from 'node:crypto'
import type { QueueDefinition } from '@services/common/declare-queue'
import { seal, unseal } from '@services/common/sealed'
import { TemporaryFailure } from '../../adapters/delivery-failures.ts'
import type { SmsChannel } from '../../adapters/sms/gateway.ts'
import { TEST_MESSAGE_ID } from '../../adapters/sms/test-numbers.ts'
import type { Config } from '../../config.ts'
import type { Metadata } from '../../db/tables.ts'
import type { Origin } from '../audit/audit.ts'
import type { Pkce } from '../one-time-tokens/pkce.ts'
import { type DelayedJob, notBefore } from '../outbox/job-delay.ts'
import type { OutboxDeps } from '../outbox/outbox.ts'
import type { Address } from '../users/address.ts'
import { claimOf, noteClaim } from '../users/claims.ts'
import { type AskedSettings, settingsAsked } from './asked-settings.ts'
import type { MailContext } from './link-mail.ts'
import {
  type BudgetDeps,
  isTestNumber,
  type Recipient,
  withMessagesCounted,
  withResendCounted,
  withSignInMailCounted,
} from './message-budget.ts'
import { type Asker, type GapKind, gapKeyOf, type SendGapDeps, withinGaps } from './send-gap.ts'

export interface MessageRequest {
  type: 'recovery' | 'sign_in' | 'confirmation' | 'email_change' | 'phone_change'
  /** Id of the message, promised to the caller whether or not one is sent. */
  messageId: string
  address: Address
  audience: string
  context: MailContext
  /** For audit entries; a request of an older version has none. */
  origin?: Origin
  pkce?: Pkce | undefined
  smsChannel?: SmsChannel | undefined
  /** sign_in only: whether an unknown address becomes an account, and its user_metadata. */
  createUser?: boolean
  data?: Metadata
  /** The mailbox has had its share: a mail goes to a proven address alone, with a code too long to be guessed. */
  isOverCap?: boolean
  /** Settings of the instance that was asked; a request of an older version has none. */
  settings?: AskedSettings
}

/** Requests are answered within milliseconds; a worker that dies gives its request to another. */
export const MESSAGE_REQUEST_QUEUE: QueueDefinition = {
  name: 'message-requests',
  retryLimit: 100,
  retryDelaySeconds: 1,
  retryDelayMaxSeconds: 60,
  expireInSeconds: 60,
  heartbeatSeconds: 10,
}

/** Sealed, because it holds an address. */
export interface MessageRequestJob extends DelayedJob {
  sealed: string
}

const GAPS: Record<MessageRequest['type'], GapKind> = {
  recovery: 'sign_in_link',
  sign_in: 'sign_in_link',
  confirmation: 'confirmation',
  email_change: 'resend',
  phone_change: 'resend',
}

/** Goes to another address than the one that was named; the worker, which knows it, counts the message there. */
export const isChange = ({ type }: Pick<MessageRequest, 'type'>) => type === 'email_change' || type === 'phone_change'

type Asked = Omit<MessageRequest, 'messageId' | 'settings'> &
  Asker & {
    /** The client address a trusted proxy vouches for. */
    clientAddress?: string | undefined
  }

/**
 * Notes the request for a worker; one of a test number is answered at once by `answer`, because its code is known and tried
 * right after. Throws while the address is within its gap or the budget of all users is used up.
 */
export async function requestMessage(
  deps: BudgetDeps & SendGapDeps & OutboxDeps & { config: Config; codeKey: KeyObject },
  { clientAddress, network, ...asked }: Asked,
  answer?: (request: MessageRequest) => Promise<void>,
): Promise<string> {
  const { address, type, audience, data = {} } = asked
  // Before anything that may refuse: a refused request of the owner takes away what a stranger registered all the same.
  if (type === 'sign_in' || type === 'recovery') {
    const claim = claimOf(deps, { address, passwordHash: null, data: type === 'sign_in' ? data : {} })
    await deps.db.transaction().execute((trx) => noteClaim(trx, claim))
  }
  const gap = address.channel === 'phone' && !isChange(asked) ? 'sms' : GAPS[type]
  const request: MessageRequest = { ...asked, messageId: deps.newId(), settings: settingsAsked(deps.config) }
  const isTest = isTestNumber(deps, address.value)
  const note = (isOverCap = false) => {
    if (isTest && answer) return answer(request)
    const sealed = seal(deps.outboxKey, { ...request, isOverCap })
    const job: MessageRequestJob = { sealed, notBefore: notBefore(deps) }
    return deps.db.transaction().execute((trx) => deps.queue.send(trx, MESSAGE_REQUEST_QUEUE.name, job))
  }
  const identifier = `${audience}\0${address.value}`
  const client = isChange(asked) ? undefined : await deps.limits.knownClient({ identifier, address: clientAddress })
  const recipient: Recipient = client === undefined ? address : { ...address, share: { client } }
  const noteSignIn = (isOverCap: boolean) =>
    isOverCap ? withinGaps(deps, [{ kind: 'over_cap', key: address.value }], () => note(true)) : note()
  await withinGaps(deps, [{ kind: gap, key: gapKeyOf(address, { ...asked, network }) }], () => {
    if (isChange(request)) return withResendCounted(deps, address, note)
    if (gap === 'sign_in_link') return withSignInMailCounted(deps, recipient, noteSignIn)
    return withMessagesCounted(deps, [recipient], note)
  })
  return isTest ? TEST_MESSAGE_ID : request.messageId
}

/** The request a job holds. Throws a TemporaryFailure for one that only a worker with another secret can open. */
export function openRequest(
  { outboxKey }: Pick<OutboxDeps, 'outboxKey'>,
  { sealed }: MessageRequestJob,
): MessageRequest {
  try {
    return unseal<MessageRequest>(outboxKey, sealed)
  } catch (error) {
    throw new TemporaryFailure('the request was sealed under another JWT_SECRET', { cause: error })
  }
}
