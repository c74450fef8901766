import { mailboxOf, parseEmail } from './email-address.ts'

/** Addresses in lower case, from a list separated by commas. */
export function parseAuthorizedAddresses(value: string): string[] {
  const addresses = value
    .split(',')
    .map((address) => address.trim())
    .filter(Boolean)
  // An empty list would let everybody pass who reads it as "no list", and nobody who does not.
  if (addresses.length === 0) throw new Error('must name an address')
  try {
    return addresses.map((address) => parseEmail(address))
  } catch {
    throw new Error('must be a list of e-mail addresses')
  }
}

/** Whether mail may go to the address, which is in lower case: as it is on the list, or with a `+label` it has there not. */
export function isAuthorizedAddress(
  { authorizedAddresses }: { authorizedAddresses: readonly string[] | undefined },
  address: string,
): boolean {
  if (!authorizedAddresses) return true
  return authorizedAddresses.includes(address) || authorizedAddresses.includes(mailboxOf(address))
}
