// Delivery of codes by SMS: gateways of one shape, tried in the configured order. A failure says whether another
// attempt or gateway may help, and quotes no number, code or secret. Start: send-sms.ts (order and fail-over), then one
// file per gateway.

export type SmsChannel = 'sms' | 'whatsapp'

export interface SmsMessage {
  /** Stable over retries and gateways, so that an operator can recognise a message that was sent twice. */
  id: string
  /** Digits with the calling code, without `+`. */
  to: string
  text: string
  /** Code in the text, for gateways that take it separately. */
  code: string
  channel: SmsChannel
}

/**
 * Gateway for SMS. `send` resolves once the upstream has accepted the message; otherwise it throws
 * - PermanentFailure (common/queue): number or message refused, neither a retry nor another gateway helps;
 * - GatewayRefusal: this gateway will not deliver it (credentials, credit, region), another one may;
 * - any other Error: temporary.
 * After a time-out the message may be on its way, and is sent again: a second code costs a message, none costs a user.
 */
export interface SmsGateway {
  name: string
  channels: readonly SmsChannel[]
  send(message: SmsMessage): Promise<{ providerMessageId: string | undefined }>
}

/** Refusal for a reason other than the number. */
export class GatewayRefusal extends Error {
  override readonly name = 'GatewayRefusal'
}

/** Failure without an upstream's code: 408, 425, 429 and 5xx are temporary, other refusals permanent. */
export function failureOfStatus(gateway: string, status: number, code?: unknown): Error {
  const text = describeAnswer(gateway, status, code)
  const passes = status < 400 || status >= 500 || [408, 425, 429].includes(status)
  return passes ? new Error(text) : new GatewayRefusal(text)
}

/** Text fit for the log. Upstreams' sentences quote numbers; six digits could be a code we sent. */
export function describeAnswer(gateway: string, status: number, code?: unknown): string {
  const shown = /^[0-9]{1,5}$/.test(String(code)) ? `, code ${code}` : ''
  return `${gateway}: answered ${status}${shown}`
}

/** Validates an upstream's message id, which goes to the log and maybe to the caller. */
export function messageIdFrom(value: unknown): string | undefined {
  const id = typeof value === 'number' ? String(value) : value
  return typeof id === 'string' && /^[\w.:=+/@-]{1,200}$/.test(id) ? id : undefined
}

/** Whether a text is ASCII; some gateways require a flag for any other. */
export const isAscii = (text: string): boolean => /^[\x20-\x7e\r\n]*$/.test(text)
