import { apiError } from '../../errors.ts'
import type { SmsChannel } from './gateway.ts'

/** Gateways with WhatsApp, listed here so that refusing a request loads no gateway. */
const WITH_WHATSAPP: readonly string[] = ['twilio']

/**
 * Parses `channel`, default `sms`; throws validation_failed if no configured gateway supports it. A hook gets either.
 */
export function parseChannel(
  sms: { providers: readonly string[]; byHook?: boolean },
  channel: string | undefined,
): SmsChannel {
  if (channel === undefined || channel === '' || channel === 'sms') return 'sms'
  const hasWhatsApp = sms.byHook || sms.providers.some((name) => WITH_WHATSAPP.includes(name))
  if (channel === 'whatsapp' && hasWhatsApp) return 'whatsapp'
  throw apiError('validation_failed', { message: 'channel must be sms, or whatsapp where a gateway sends it' })
}
