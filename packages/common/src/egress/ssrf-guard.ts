/**
 * This folder owns requests to addresses that a person can choose. Decides which URLs and addresses may be contacted
 * (contract/media.md 4.2, 4.3). Everything is refused unless it is public; only the operator's `allowCidrs` make
 * exceptions. Enforced at the socket by guarded-connector.ts; a bounded request is in open-egress.ts.
 */
import { isIP } from 'node:net'
import { networkInterfaces } from 'node:os'
import ipaddr from 'ipaddr.js'

/** Reason of a refusal; for the log, because it reveals the network. */
export type Refusal =
  | 'not a URL, or too long'
  | 'scheme'
  | 'credentials in the URL'
  | 'our own address'
  | 'refused literal address'
  | 'refused name or port'
  | 'refused address'

/** Refusal by the guard, unless its owner has an error of its own (`GuardOptions.refuse`). */
export class EgressRefused extends Error {
  override readonly name = 'EgressRefused'
  readonly code = 'egress_refused'
  readonly refusal: Refusal
  constructor(refusal: Refusal) {
    super(refusal)
    this.refusal = refusal
  }
}

export interface GuardOptions {
  /** Non-public networks that may be reached, on any port and under any host name. */
  allowCidrs?: readonly string[]
  /** Refused networks that look public, such as a provider's internal ranges. Wins over `allowCidrs`. */
  denyCidrs?: readonly string[]
  /** Permitted ports of public servers; 80 and 443 if absent. */
  ports?: readonly number[] | 'any'
  /** Whether plain http is refused outside `allowCidrs`. */
  requiresTls?: boolean
  /** Addresses of this service, which must not import from itself. */
  ownUrls?: readonly string[]
  /** Port of this service, refused on every address of this machine, whatever the name. */
  ownPort?: number
  /** Makes the error of a refusal; EgressRefused if absent. */
  refuse?: (refusal: Refusal) => Error
}

export interface Target {
  /** A name, or an address without brackets. */
  hostname: string
  port: number
  /** Whether the connection has no TLS of ours. */
  isPlain?: boolean
}

export interface Guard {
  /**
   * Parses a URL (against `base` for a redirect) and applies every check that needs no DNS query. Throws a refusal,
   * even for text that is no URL. Use only the returned URL from here on.
   */
  parseUrl: (text: string, base?: URL) => URL
  /** Whether a connection for this target may go to this address; false for anything but an address. */
  permits: (target: Target, address: string) => boolean
  refuse: (refusal: Refusal) => Error
}

type Cidr = ReturnType<typeof ipaddr.parseCIDR>

/** Longer URLs are no real sources; the limit also keeps logs and rows small (contract/media.md 2.5). */
const MAX_URL_LENGTH = 2048

/** Plain web servers and nothing else: an open choice of ports makes the service a port scanner. */
const WEB_PORTS = [80, 443]

/** Names with a meaning only inside a network: RFC 6762, 8375, 6761, 7686, and ICANN's reserved `.internal`. */
const PRIVATE_SUFFIXES = ['.local', '.internal', '.localhost', '.home.arpa', '.onion']

/** Azure's wire server answers with instance secrets, yet its address is public, so no range covers it. */
const PUBLIC_BUT_INTERNAL = ['168.63.129.16/32']

/** The only IPv6 space that IANA has assigned for global use; all else is unassigned or special. */
const GLOBAL_IPV6: Cidr = ipaddr.parseCIDR('2000::/3')

/** Builds the guard. Throws for a malformed CIDR, so that a typing error stops the start and not a request. */
export function createGuard(options: GuardOptions = {}): Guard {
  const allowed = (options.allowCidrs ?? []).map(parseCidr)
  const denied = (options.denyCidrs ?? []).map(parseCidr)
  const internal = PUBLIC_BUT_INTERNAL.map(parseCidr)
  const { ports = WEB_PORTS, requiresTls = false, refuse = (refusal) => new EgressRefused(refusal) } = options
  const isOpen = (port: number) => ports === 'any' || ports.includes(port)
  const own = (options.ownUrls ?? []).map((url) => targetOf(new URL(url)))
  const isOrdinary = ({ hostname, port }: Target) => isOpen(port) && isOrdinaryName(hostname)

  const permits = (target: Target, text: string): boolean => {
    const address = parseAddress(text)
    if (!address || isWithin(address, denied)) return false
    if (target.port === options.ownPort && isOfThisMachine(address)) return false
    if (isWithin(address, allowed)) return true
    if (requiresTls && target.isPlain) return false
    return isPublic(address) && !isWithin(address, internal) && isOrdinary(target)
  }

  const parseUrl = (text: string, base?: URL): URL => {
    const url = text.length <= MAX_URL_LENGTH ? URL.parse(text, base?.href) : null
    if (!url || url.href.length > MAX_URL_LENGTH) throw refuse('not a URL, or too long')
    if (url.protocol !== 'http:' && url.protocol !== 'https:') throw refuse('scheme')
    if (url.username || url.password) throw refuse('credentials in the URL')

    const target = targetOf(url)
    if (own.some((self) => isSame(self, target))) throw refuse('our own address')
    // Only an exception permits plain http, or an unusual name or port; its address is known at connect time.
    if (requiresTls && target.isPlain && allowed.length === 0) throw refuse('scheme')
    if (isIP(target.hostname)) {
      if (!permits(target, target.hostname)) throw refuse('refused literal address')
      return url
    }
    if (!isOrdinary(target) && allowed.length === 0) throw refuse('refused name or port')
    return url
  }

  return { parseUrl, permits, refuse }
}

/** Host without brackets, and the port with the scheme's default filled in. */
export function targetOf(url: URL): Target {
  const hostname = url.hostname.replace(/^\[|\]$/g, '')
  return {
    hostname: hostname.replace(/(?<!\.)\.+$/, ''),
    port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
    isPlain: url.protocol === 'http:',
  }
}

/** A name is one service on every port; an address and localhost may host others. */
function isSame(self: Target, { hostname, port }: Target): boolean {
  const isShared = isIP(hostname) || hostname === 'localhost'
  return self.hostname === hostname && (!isShared || self.port === port)
}

function isOrdinaryName(hostname: string): boolean {
  if (isIP(hostname)) return true
  const name = hostname.toLowerCase().replace(/(?<!\.)\.+$/, '')
  return name.includes('.') && !PRIVATE_SUFFIXES.some((suffix) => name.endsWith(suffix))
}

/** Reads the interfaces each time, because addresses change. */
function isOfThisMachine(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() === 'loopback' || address.range() === 'unspecified') return true
  const cards = Object.values(networkInterfaces()).flatMap((card) => card ?? [])
  return cards.some((card) => parseAddress(card.address)?.toString() === address.toString())
}

function isPublic(address: ipaddr.IPv4 | ipaddr.IPv6): boolean {
  if (address.range() !== 'unicast') return false
  return address.kind() === 'ipv4' || isWithin(address, [GLOBAL_IPV6])
}

/** Unwraps IPv4-mapped addresses. Only canonical forms pass: the library reads `0177.1` differently. */
function parseAddress(text: string) {
  return isIP(text) ? ipaddr.process(text) : undefined
}

function isWithin(address: ipaddr.IPv4 | ipaddr.IPv6, cidrs: readonly Cidr[]): boolean {
  return cidrs.some(([network, bits]) => address.kind() === network.kind() && address.match(network, bits))
}

function parseCidr(text: string): Cidr {
  if (!ipaddr.isValidCIDR(text)) throw new Error(`not a CIDR: ${text}`)
  return ipaddr.parseCIDR(text)
}
