import { apiError } from '../../errors.ts'

/** The e-mail pattern of the HTML standard ("valid e-mail address"): what browsers' forms accept. */
const EMAIL =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/

const MAX_EMAIL_BYTES = 255

export const isEmail = (text: string): boolean => Buffer.byteLength(text) <= MAX_EMAIL_BYTES && EMAIL.test(text)

/** The address without a `+label`, by which addresses of one mailbox are counted together. Accounts are never found by it. */
export const mailboxOf = (email: string): string => email.replace(/\+[^@]*@/, '@')

/** The address in lower case, as it is stored and looked up. Throws validation_failed. */
export function parseEmail(email: string, status = 400): string {
  if (email === '') throw apiError('validation_failed', { status, message: 'An email address is required' })
  if (!isEmail(email)) {
    throw apiError('validation_failed', { status, message: 'Unable to validate email address: invalid format' })
  }
  return email.toLowerCase()
}
