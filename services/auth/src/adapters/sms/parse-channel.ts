import { apiError } from '../../errors.ts'
import type { SmsChannel } from './gateway.ts'

/** The gateways with WhatsApp. Decided from the settings: a request must not load a gateway to be refused. */
const WITH_WHATSAPP: readonly string[] = ['twilio']

/** The `channel` of a request, `sms` when it has none. Throws validation_failed for what no configured gateway has. */
export function parseChannel(sms: { providers: readonly string[] }, channel: string | undefined): SmsChannel {
  if (channel === undefined || channel === '' || channel === 'sms') return 'sms'
  if (channel === 'whatsapp' && sms.providers.some((name) => WITH_WHATSAPP.includes(name))) return 'whatsapp'
  throw apiError('validation_failed', { message: 'This channel is not supported' })
}
