// The address of a client, as a proxy passes it on: the one reader for both services. The one rule: only what the nearest
// proxy has written counts, since a client writes whatever it likes before that. Which header that is, is a setting.
import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'

/** A client as a trusted header names it. */
export interface TrustedClient {
  /** The address in its usual spelling, without port and zone; undefined where the header holds none. */
  address: string | undefined
  /** Rate-limit key: IPv6 by /64; the same one for all clients without an address. */
  limitKey: string
}

/** Limit key of requests whose trusted header holds no address: apart, they would be free to be a new client each time. */
const NO_ADDRESS = 'no address'

/** Entry of a list that counts. Proxies append, so the nearest one has written the last. */
type Entry = 'first' | 'last'

/** Reads a trusted header; undefined where the request has none, because it did not come by way of the proxy. */
export function readTrustedHeader(
  request: FastifyRequest,
  header: string,
  entry: Entry = 'last',
): TrustedClient | undefined {
  const value = String(request.headers[header] ?? '').trim()
  if (value === '') {
    warnOnce(request, header, 'a request came without the trusted address header: it counts for no client')
    return undefined
  }
  const comma = entry === 'last' ? value.lastIndexOf(',') : value.indexOf(',')
  const element = entry === 'last' ? value.slice(comma + 1) : value.slice(0, comma === -1 ? undefined : comma)
  const node = header === 'forwarded' ? forParameterOf(element) : element
  const address = parseAddress(node)
  if (address === undefined) {
    warnOnce(request, header, 'the trusted address header holds no address: such requests count as one client')
  }
  return { address, limitKey: limitKeyOfAddress(node) }
}

/**
 * The address in one of the spellings of proxies: with or without port, zone, brackets and quotes. IPv4 in IPv6 is IPv4.
 * undefined where there is none.
 */
export function parseAddress(text: string): string | undefined {
  const bare = /^"?(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5}|([^"[\]]*))"?$/.exec(text.trim())
  const [address = ''] = (bare?.[1] ?? bare?.[2] ?? bare?.[3] ?? '').split('%', 1)
  switch (isIP(address)) {
    case 4:
      return address
    case 6: {
      const [canonical, words] = spellOut(address)
      return isMapped(words) ? toIPv4(words) : canonical
    }
    default:
      return undefined
  }
}

/** Rate-limit key of an address that no header names, a socket's. */
export function limitKeyOfAddress(text: string): string {
  const address = parseAddress(text)
  return address === undefined ? NO_ADDRESS : networkOf(address)
}

/** IPv6 by /64, of which every customer has at least one to itself and could take another address for every request. */
function networkOf(address: string): string {
  if (isIP(address) === 4) return address
  const [, words] = spellOut(address)
  return `${words
    .slice(0, 4)
    .map((word) => word.toString(16))
    .join(':')}::/64`
}

/** The canonical spelling of an IPv6 address (RFC 5952), and its eight words. */
function spellOut(address: string): [string, number[]] {
  const canonical = new URL(`http://[${address}]/`).hostname.slice(1, -1)
  const [head = '', tail = ''] = canonical.split('::')
  const wordsOf = (text: string) =>
    text
      .split(':')
      .filter(Boolean)
      .map((word) => Number.parseInt(word, 16))
  const [before, after] = [wordsOf(head), wordsOf(tail)]
  return [canonical, [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]]
}

const isMapped = (words: number[]) => words.slice(0, 6).join() === '0,0,0,0,0,65535'

const toIPv4 = (words: number[]) =>
  words
    .slice(6)
    .flatMap((word) => [word >> 8, word & 255])
    .join('.')

/** `for=` of an element of `Forwarded` (RFC 7239); empty unless every pair is well-formed, as a client may have begun it. */
function forParameterOf(element: string): string {
  const pairs = element.split(';').map((pair) => pair.trim())
  if (!pairs.every((pair) => /^[\w-]+=(?:[\w.:[\]%-]+|"[^"\\]*")$/.test(pair))) return ''
  return pairs.find((pair) => /^for=/i.test(pair))?.slice('for='.length) ?? ''
}

/** Warnings that each server has logged: a header that is wrong once is wrong in every request. */
const said = new WeakMap<object, Set<string>>()

/** Without the value, which is an address of a person or anything a client wrote. */
function warnOnce({ server: { server }, log }: FastifyRequest, header: string, message: string): void {
  const key = `${header}: ${message}`
  const before = said.get(server) ?? new Set()
  if (before.has(key)) return
  said.set(server, before.add(key))
  log.warn({ header }, message)
}
