import { apiError } from '../../errors.ts'

/** E.164: up to fifteen digits, the first not 0. */
const PHONE = /^[1-9][0-9]{1,14}$/

/** Longest input; longer ones are not processed. */
const MAX_TYPED = 100

/** Removes all spaces and one leading `+`, unchecked, for looking an account up. Empty for too long an input. */
export function normalisePhone(phone: string): string {
  return phone.length > MAX_TYPED ? '' : phone.replaceAll(' ', '').replace(/^\+/, '')
}

/** Returns the digits of a number. Throws validation_failed. */
export function parsePhone(phone: string, status = 400): string {
  if (phone === '') throw apiError('validation_failed', { status, message: 'A phone number is required' })
  const digits = normalisePhone(phone)
  if (!PHONE.test(digits)) {
    throw apiError('validation_failed', { status, message: 'Invalid phone number format (E.164 required)' })
  }
  return digits
}
