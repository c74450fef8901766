import { isStorable } from '@services/common/database/storable-json'
import type { Metadata } from '../../db/tables.ts'
import { isEmail, withAsciiDomain } from '../mail/email-address.ts'
import type { ExternalAccount, ExternalEmail } from './provider.ts'

/** Account of which every member has been checked. */
export interface CleanAccount {
  sub: string
  /** Addresses in lower case. */
  emails: ExternalEmail[]
  /** Addresses were reported, but none in a valid form. */
  hasOnlyMalformedEmails: boolean
  claims: Metadata
  isPartial?: boolean
}

const MAX_SUB_LENGTH = 255
const MAX_EMAILS = 50
const MAX_CLAIM_BYTES = 2048
/** Claims end up in the user's metadata, which access tokens carry. */
const MAX_CLAIMS_BYTES = 8 * 1024

/** Throws if the provider gave no usable id. Empty claims are left out; too large ones are left out and reported. */
export function cleanAccount(
  { sub, emails, claims, isPartial = false }: ExternalAccount,
  reportTooLarge: (claims: string[]) => void = () => {},
): CleanAccount {
  const id = typeof sub === 'number' && Number.isSafeInteger(sub) ? String(sub) : sub
  if (typeof id !== 'string' || id === '' || id.length > MAX_SUB_LENGTH || !isStorable(id)) {
    throw new Error('the provider gave no id of the account')
  }
  const reported = emails.slice(0, MAX_EMAILS).filter(({ email }) => (email ?? '') !== '')
  const known = reported
    .map(({ email, verified, primary }) => ({
      email: withAsciiDomain(String(email)),
      verified: verified === true,
      primary: primary === true,
    }))
    // Checked before lower-casing, which turns U+212A into k and so yields another person's address.
    .filter(({ email }) => isEmail(email))
    .map((known) => ({ ...known, email: known.email.toLowerCase() }))
  const hasOnlyMalformedEmails = reported.length > 0 && known.length === 0
  const limit = { room: MAX_CLAIMS_BYTES, tooLarge: [] as string[] }
  const custom = isObject(claims.custom_claims) ? claims.custom_claims : undefined
  const kept = cleanClaims(custom ? { ...claims, custom_claims: undefined } : claims, limit)
  if (custom) kept.custom_claims = cleanClaims(custom, limit)
  if (limit.tooLarge.length > 0) reportTooLarge(limit.tooLarge)
  return { sub: id, emails: known, hasOnlyMalformedEmails, claims: withoutEmpty(kept), isPartial }
}

const isObject = (value: unknown): value is Metadata =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const withoutEmpty = (claims: Metadata): Metadata =>
  Object.fromEntries(
    Object.entries(claims).filter(([, value]) => value !== null && value !== '' && JSON.stringify(value) !== '{}'),
  )

/** Bounds each claim, and all of them together; those of `custom_claims` count as claims of their own. */
function cleanClaims(claims: Metadata, limit: { room: number; tooLarge: string[] }): Metadata {
  const kept: Metadata = {}
  for (const [name, value] of Object.entries(claims)) {
    const json = isStorable(value) ? JSON.stringify(value, withoutLongNumbers) : undefined
    if (json === undefined) continue
    const bytes = Buffer.byteLength(json)
    if (bytes > MAX_CLAIM_BYTES || bytes > limit.room) {
      limit.tooLarge.push(name)
      continue
    }
    limit.room -= bytes
    kept[name] = JSON.parse(json)
  }
  return kept
}

/** PostgreSQL writes 1e308 with all its digits; JSON writes infinite numbers as null. */
const withoutLongNumbers = (_key: string, value: unknown) =>
  typeof value === 'number' && /e|Infinity/.test(String(value)) ? undefined : value

/** Address of the account: a verified one if any, preferably the provider's primary one. */
export function primaryEmail({ emails }: Pick<CleanAccount, 'emails'>): ExternalEmail | undefined {
  const verified = emails.filter((email) => email.verified)
  const candidates = verified.length > 0 ? verified : emails
  return candidates.find(({ primary }) => primary) ?? candidates.at(-1)
}
