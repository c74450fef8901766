// The client's address behind a proxy, read from a trusted header that a setting names. Only the entry of the nearest
// proxy is trusted, because the client may have written all entries before it.
import { isIP, SocketAddress } from 'node:net'
import type { FastifyRequest } from 'fastify'

export interface TrustedClient {
  /** Canonical address without port and zone; undefined where the header holds none. */
  address: string | undefined
  /** Rate-limit key: IPv6 by /64; one key for all clients without an address. */
  limitKey: string
}

/** Shared by all requests whose header holds no address: with keys of their own they would evade every limit. */
const NO_ADDRESS = 'no address'

/** Trusted entry of a list. Proxies append, so the nearest one has written the last. */
type Entry = 'first' | 'last'

/** Reads a trusted header; undefined where it is absent, because the request bypassed the proxy. */
export function readTrustedHeader(
  request: FastifyRequest,
  header: string,
  entry: Entry = 'last',
): TrustedClient | undefined {
  const value = String(request.headers[header] ?? '').trim()
  if (value === '') {
    warnOnce(request, header, 'request without the trusted address header: no client limit applies')
    return undefined
  }
  const node = header === 'forwarded' ? nodeOf(entryOf(value, 'last')) : entryOf(value, entry)
  const address = parseAddress(node)
  if (address === undefined) {
    warnOnce(request, header, 'trusted address header holds no address: such requests share one limit')
  }
  return { address, limitKey: limitKeyOfAddress(node) }
}

const entryOf = (value: string, entry: Entry): string => value.split(',').at(entry === 'last' ? -1 : 0) ?? ''

/**
 * Parses an address as proxies write it: with or without port, zone, brackets and quotes. IPv4 in IPv6 becomes IPv4.
 */
export function parseAddress(text: string): string | undefined {
  const bare = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5}|([^"[\]]*))$/.exec(unquoted(text.trim()))
  const [address = ''] = (bare?.[1] ?? bare?.[2] ?? bare?.[3] ?? '').split('%', 1)
  if (isIP(address) !== 6) return isIP(address) === 4 ? address : undefined
  const { address: canonical } = new SocketAddress({ address, family: 'ipv6' })
  return /^::ffff:([\d.]+)$/.exec(canonical)?.[1] ?? canonical
}

export function limitKeyOfAddress(text: string): string {
  const address = parseAddress(text)
  return address === undefined ? NO_ADDRESS : networkOf(address)
}

/** IPv6 by /64: every customer has at least one to itself, and could use a new address of it for each request. */
function networkOf(address: string): string {
  if (isIP(address) === 4) return address
  const [before = [], after = []] = address.split('::').map((words) => words.split(':').filter(Boolean))
  const zeros = Array<string>(8 - before.length - after.length).fill('0')
  return `${[...before, ...zeros, ...after].slice(0, 4).join(':')}::/64`
}

const unquoted = (text: string): string => /^"(.*)"$/.exec(text)?.[1] ?? text

/** A pair of an element, or nothing between two semicolons. An address with a port needs no quotes here. */
const PAIR = /[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=([!#$%&'*+.^_`|~\w:[\]-]+|"(?:[^"\\]|\\.)*"))?[ \t]*(?:;|$)/y

/**
 * Reads the node of `for=` in an element of `Forwarded` (RFC 7239), without an obfuscated port. Empty where the element
 * has none, has two or is malformed. A comma in quotes ends an element too, because the client may have opened the
 * quote. A value that a proxy quotes then has an odd quote and is malformed. A proxy that copies a client's quotes
 * escapes this check: `host="a",for=8.8.8.8;b=""` is well-formed either way.
 */
function nodeOf(element: string): string {
  const nodes: string[] = []
  PAIR.lastIndex = 0
  while (PAIR.lastIndex < element.length) {
    const pair = PAIR.exec(element)
    if (!pair) return ''
    const [, name = '', value = ''] = pair
    if (name.toLowerCase() === 'for') nodes.push(unquoted(value).replace(/\\(.)/g, '$1'))
  }
  return nodes.length === 1 ? (nodes[0] ?? '').replace(/:_[\w.-]+$/, '') : ''
}

/** Warnings logged per server: a wrong header is wrong in every request. */
const said = new WeakMap<object, Set<string>>()

/** Logs no value: it is personal data, or any text of a client. */
function warnOnce({ server: { server }, log }: FastifyRequest, header: string, message: string): void {
  const key = `${header}: ${message}`
  const before = said.get(server) ?? new Set()
  if (before.has(key)) return
  said.set(server, before.add(key))
  log.warn({ header }, message)
}
