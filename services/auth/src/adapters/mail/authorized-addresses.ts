import { parseEmail, withoutLabel } from './email-address.ts'

export function parseAuthorizedAddresses(value: string): string[] {
  const addresses = value
    .split(',')
    .map((address) => address.trim())
    .filter(Boolean)
  // One reader would take an empty list for "no list", another for "no address".
  if (addresses.length === 0) throw new Error('must name an address')
  try {
    return addresses.map((address) => parseEmail(address))
  } catch {
    throw new Error('must be a list of e-mail addresses')
  }
}

/** Whether mail may go to this lower-case address: listed as it is, or without its `+label`. */
export function isAuthorizedAddress(
  { authorizedAddresses }: { authorizedAddresses: readonly string[] | undefined },
  address: string,
): boolean {
  if (!authorizedAddresses) return true
  return authorizedAddresses.includes(address) || authorizedAddresses.includes(withoutLabel(address))
}
