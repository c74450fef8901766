import { apiError } from '../errors.ts'

/** E.164 digits without the `+`. */
const PHONE = /^[1-9][0-9]{1,14}$/

/** The digits of a number as it is stored and looked up. Throws validation_failed. */
export function parsePhone(phone: string): string {
  const digits = normalisePhone(phone)
  if (PHONE.test(digits)) return digits
  throw apiError('validation_failed', { message: 'Invalid phone number format (E.164 required)' })
}

/** Without the `+` and spaces people write; not checked. */
export const normalisePhone = (phone: string): string => phone.replace(/^\+/, '').replaceAll(' ', '')
