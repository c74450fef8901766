import { parseEmail } from '../../adapters/mail/email-address.ts'
import type { Config } from '../../config.ts'
import type { Address } from '../../core/users/address.ts'
import { parsePhone } from '../../core/users/phone-number.ts'
import { apiError } from '../../errors.ts'

/** Returns the only address of a request. Throws validation_failed for both, none, or a malformed one. */
export function oneAddress({ email = '', phone = '' }: { email?: string; phone?: string }): Address {
  refuseBoth({ email, phone })
  if (email !== '') return { channel: 'email', value: parseEmail(email) }
  requireAddress({ email, phone })
  return { channel: 'phone', value: parsePhone(phone) }
}

export function requireAddress({ email = '', phone = '' }: { email?: string; phone?: string }): void {
  if (email !== '' || phone !== '') return
  throw apiError('validation_failed', { message: 'An email address or phone number is required' })
}

export function refuseBoth({ email = '', phone = '' }: { email?: string; phone?: string }): void {
  if (email === '' || phone === '') return
  throw apiError('validation_failed', { message: 'Only an email address or phone number should be provided' })
}

/** Throws if this kind of address cannot sign up or in. */
export function requireProvider({ signup }: Pick<Config, 'signup'>, channel: Address['channel'], status = 400): void {
  if (channel === 'email' && !signup.email) throw apiError('email_provider_disabled', { status })
  if (channel === 'phone' && !signup.phone) throw apiError('phone_provider_disabled', { status })
}
