// What is between "send this code to that number" and the networks: gateways of one shape, tried in the configured order.
// The one rule: a failure says whose fault it is (below), and nothing it says holds a number, a code or a secret.
// Start: send-sms.ts (order and fail-over), sms-guards.ts (before anything is queued), one file per gateway.

export type SmsChannel = 'sms' | 'whatsapp'

export interface SmsMessage {
  /** Stable over retries and gateways, so that an operator can recognise a message that went out twice. */
  id: string
  /** Digits with the country's calling code, without `+`. */
  to: string
  text: string
  /** The code in the text; for gateways that take it apart from the text. */
  code: string
  channel: SmsChannel
}

/**
 * One way out. `send` resolves when the far side has taken the message over; otherwise it throws
 * - PermanentFailure (common/queue): the number or the message is refused, no retry and no other gateway helps;
 * - GatewayRefusal: this gateway will not deliver it (credentials, credit, region), another one may;
 * - any other Error: worth a retry, or another gateway now.
 * After a time-out or a lost connection the message may be on its way nevertheless: a code sent twice costs a message,
 * a code not sent costs a user.
 */
export interface SmsGateway {
  name: string
  channels: readonly SmsChannel[]
  send(message: SmsMessage): Promise<{ providerMessageId: string | undefined }>
}

/** This gateway refuses, for a reason that is not in the number. */
export class GatewayRefusal extends Error {
  override readonly name = 'GatewayRefusal'
}

/** What a status alone says, where the far side's own codes say nothing: 408, 425, 429 and 5xx pass, other refusals stay. */
export function failureOfStatus(gateway: string, status: number, code?: unknown): Error {
  const text = describeAnswer(gateway, status, code)
  const passes = status < 400 || status >= 500 || [408, 425, 429].includes(status)
  return passes ? new Error(text) : new GatewayRefusal(text)
}

/** Text that may be logged: the far side's code only if it looks like one; its sentences quote numbers, and six digits could be a code we sent. */
export function describeAnswer(gateway: string, status: number, code?: unknown): string {
  const shown = /^[0-9]{1,5}$/.test(String(code)) ? `, code ${code}` : ''
  return `${gateway}: answered ${status}${shown}`
}

/** An id of the far side, if it is one: it goes to the log and maybe to the caller. */
export function messageIdFrom(value: unknown): string | undefined {
  const id = typeof value === 'number' ? String(value) : value
  return typeof id === 'string' && /^[\w.:=+/@-]{1,200}$/.test(id) ? id : undefined
}
