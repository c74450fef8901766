import { apiError } from '../../errors.ts'

/** E.164: up to fifteen digits, the first of which is never 0. */
const PHONE = /^[1-9][0-9]{1,14}$/

/** Nobody types more around fifteen digits; what is longer is not worth a pass over it. */
const MAX_TYPED = 100

/** For looking an account up: all spaces and one leading `+` gone, nothing checked. Empty when it is far too long. */
export function normalisePhone(phone: string): string {
  return phone.length > MAX_TYPED ? '' : phone.replaceAll(' ', '').replace(/^\+/, '')
}

/** The number's digits, as it is stored and looked up. Throws validation_failed. */
export function parsePhone(phone: string, status = 400): string {
  if (phone === '') throw apiError('validation_failed', { status, message: 'A phone number is required' })
  const digits = normalisePhone(phone)
  if (!PHONE.test(digits)) {
    throw apiError('validation_failed', { status, message: 'Invalid phone number format (E.164 required)' })
  }
  return digits
}
