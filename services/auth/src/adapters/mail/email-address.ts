import { domainToASCII, domainToUnicode } from 'node:url'
import { apiError } from '../../errors.ts'

/** Pattern of the HTML standard ("valid e-mail address"), which browsers' forms use. */
const EMAIL =
  /^[a-zA-Z0-9.!#$%&'*+/=?^_`{|}~-]+@[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?)*$/

const MAX_EMAIL_BYTES = 255

export const isEmail = (text: string): boolean => Buffer.byteLength(text) <= MAX_EMAIL_BYTES && EMAIL.test(text)

/** Address without its `+label`, which most mail servers deliver to the same mailbox. */
export const withoutLabel = (email: string): string => email.replace(/\+[^@]*@/, '@')

/** Names of one mail service, which ignores dots (https://support.google.com/mail/answer/7436150). */
const IGNORES_DOTS = /^(.*)@(?:gmail|googlemail)\.com$/

/**
 * Mailbox of a lower-case address, for limits, which count all its addresses together. Accounts are never found by it:
 * which addresses are one mailbox is the mail service's choice.
 */
export function mailboxOf(email: string): string {
  const address = withoutLabel(email)
  const [, name] = IGNORES_DOTS.exec(address) ?? []
  return name === undefined ? address : `${name.replaceAll('.', '')}@gmail.com`
}

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

/**
 * Validates an address and returns it as it is stored: in lower case, its domain in ASCII. Throws validation_failed.
 */
export function parseEmail(email: string, status = 400): string {
  if (email === '') throw apiError('validation_failed', { status, message: 'An email address is required' })
  const ascii = withAsciiDomain(email)
  if (!isEmail(ascii)) {
    throw apiError('validation_failed', { status, message: 'Unable to validate email address: invalid format' })
  }
  return ascii.toLowerCase()
}

/** Letters, marks and digits of all scripts, the joiners and middle dot that some need (RFC 5892), hyphens inside. */
const OWN_SCRIPT = /^(?!-|.*\.-|.*-(\.|$))(?:[\p{L}\p{M}\p{N}\u00b7\u200c.-]|\u200d)+$/u
const isAscii = (text: string) => !/[^\0-\x7f]/.test(text)

/** Writes a domain in its own script in ASCII (RFC 5891), in which mail is sent and accounts are found. */
export function withAsciiDomain(email: string): string {
  if (email.length > MAX_EMAIL_BYTES || isAscii(email)) return email
  const [local = '', domain = '', ...more] = email.split('@')
  if (more.length > 0 || isAscii(domain) || !OWN_SCRIPT.test(domain)) return email
  const ascii = domainToASCII(domain)
  return isSameDomain(domain, ascii) ? `${local}@${ascii}` : email
}

/** False where the mapping replaced letters, as in full-width `ｇmail.com`: a provider might take it for another one. */
function isSameDomain(domain: string, ascii: string): boolean {
  const labels = ascii.split('.')
  const isOwn = (label: string, index: number) => isAscii(label) || labels[index]?.startsWith('xn--')
  return domain.split('.').every(isOwn) && domainToUnicode(ascii) === domain.normalize('NFC').toLowerCase()
}

/** Returns an address as people read it, with the domain in its own script. */
export function shownEmail(email: string): string {
  const [local, domain = ''] = email.split('@')
  return /(^|\.)xn--/.test(domain) ? `${local}@${domainToUnicode(domain) || domain}` : email
}
