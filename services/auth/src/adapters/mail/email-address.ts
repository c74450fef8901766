import { apiError } from '../../errors.ts'

/** Pattern of the HTML standard ("valid e-mail address"), which browsers' forms use. */
const EMAIL =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/

const MAX_EMAIL_BYTES = 255

export const isEmail = (text: string): boolean => Buffer.byteLength(text) <= MAX_EMAIL_BYTES && EMAIL.test(text)

/** Address without its `+label`; limits count all addresses of a mailbox together. Accounts are never found by it. */
export const mailboxOf = (email: string): string => email.replace(/\+[^@]*@/, '@')

/** Second level of country domains below which organizations register: `co.uk`, `com.br`. */
const IS_REGISTRY = /^(?:[a-z]{2,3}|gouv|asso)\.[a-z]{2}$/

/**
 * Domain of the organization that receives mail for an address, because one organization can name any number of hosts.
 * Guessed without a list: two unrelated ones taken for one only share their slots of delivery.
 */
export function organizationOf(email: string): string {
  const labels = email.slice(email.lastIndexOf('@') + 1).split('.')
  return labels.slice(IS_REGISTRY.test(labels.slice(-2).join('.')) ? -3 : -2).join('.')
}

/** Validates an address and returns it in lower case, as it is stored. Throws validation_failed. */
export function parseEmail(email: string, status = 400): string {
  if (email === '') throw apiError('validation_failed', { status, message: 'An email address is required' })
  if (!isEmail(email)) {
    throw apiError('validation_failed', { status, message: 'Unable to validate email address: invalid format' })
  }
  return email.toLowerCase()
}
