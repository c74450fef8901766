import { apiError } from '../errors.ts'

/** The e-mail pattern of the HTML standard ("valid e-mail address"): what browsers' forms accept. */
const EMAIL =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/

const MAX_EMAIL_BYTES = 255

/** The address in lower case, as it is stored and looked up. Throws validation_failed. */
export function parseEmail(email: string, status = 400): string {
  if (email === '') throw apiError('validation_failed', { status, message: 'An email address is required' })
  if (Buffer.byteLength(email) > MAX_EMAIL_BYTES || !EMAIL.test(email)) {
    throw apiError('validation_failed', { status, message: 'Unable to validate email address: invalid format' })
  }
  return email.toLowerCase()
}
