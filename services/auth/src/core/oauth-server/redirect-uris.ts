/** Schemes whose addresses run script or show local content in a browser. */
const FORBIDDEN = ['javascript', 'data', 'file', 'vbscript', 'about', 'blob']

export const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']

export const MAX_ADDRESS = 2048

/**
 * Describes what is wrong with a redirect address; undefined for a valid one. Private-use schemes need no host where
 * they have a dot (RFC 8252, section 7.1).
 */
export function redirectFault(address: string): string | undefined {
  const fault = textFault(address)
  if (fault) return fault
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(address)?.[1]?.toLowerCase()
  if (scheme === undefined) return 'must have a scheme'
  if (FORBIDDEN.includes(scheme)) return `must not have the scheme ${scheme}`
  if (scheme === 'http' || scheme === 'https') return webFault(address)
  if (!URL.canParse(address)) return 'must be a URL'
  if (new URL(address).host !== '' || scheme.includes('.')) return undefined
  return 'must have a host, or a private-use scheme with a dot'
}

/** Describes what is wrong with an address that people may open; undefined for https and http. */
export const pageFault = (address: string): string | undefined => textFault(address) ?? hostFault(address)

/** Describes what is wrong with the address of an endpoint; undefined for https, and for http on loopback. */
export const webFault = (address: string): string | undefined => pageFault(address) ?? transportFault(address)

/** The parser of URLs would drop or rewrite the characters refused here, so that two texts were one address. */
export function textFault(address: string): string | undefined {
  if (address.length > MAX_ADDRESS) return `must have at most ${MAX_ADDRESS} characters`
  if (!/^[\x21-\x7e]+$/.test(address) || address.includes('\\')) return 'must have visible ASCII characters only'
  return address.includes('#') ? 'must not have a fragment' : undefined
}

function hostFault(address: string): string | undefined {
  if (!/^https?:\/\/[^/]/i.test(address) || !URL.canParse(address)) return 'must be a URL of https or http with a host'
  const { username, password } = new URL(address)
  return username !== '' || password !== '' ? 'must not have a user name or password' : undefined
}

function transportFault(address: string): string | undefined {
  const { protocol, hostname } = new URL(address)
  if (protocol === 'https:' || LOOPBACK.includes(hostname)) return undefined
  return 'must be https, or http on localhost, 127.0.0.1 or ::1'
}

/**
 * Whether a request may name this address: a registered one letter by letter, on loopback with any port. A native
 * application gets a new one each time (RFC 8252, section 7.3).
 */
export function isRegisteredRedirect(registered: readonly string[], address: string): boolean {
  if (registered.includes(address)) return true
  const given = withoutPort(address)
  // Pages read it as a URL, which a port above 65535 is not.
  return given !== undefined && URL.canParse(address) && registered.some((each) => withoutPort(each) === given)
}

/** A loopback address without its port; undefined for any other. */
function withoutPort(address: string): string | undefined {
  const [, host, rest = ''] =
    /^(http:\/\/(?:localhost|127\.0\.0\.1|\[::1\]))(?::\d{1,5})?([/?].*)?$/.exec(address) ?? []
  return host && host + rest
}
