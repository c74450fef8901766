import { apiError } from '../errors.ts'

/** E.164: up to fifteen digits, the first of which is not zero. */
const PHONE = /^[1-9][0-9]{1,14}$/

/** The number as it is stored and returned: digits without the leading +. Throws validation_failed. */
export function parsePhone(phone: string): string {
  const digits = phone.replace(/^\+/, '').replaceAll(' ', '')
  if (!PHONE.test(digits)) {
    throw apiError('validation_failed', { message: 'Invalid phone number format (E.164 required)' })
  }
  return digits
}
