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
  const node = header === 'forwarded' ? nodeOf(entryOf(value, 'last')) : entryOf(value, entry)
  const address = parseAddress(node)
  if (address === undefined) {
    warnOnce(request, header, 'the trusted address header holds no address: such requests count as one client')
  }
  return { address, limitKey: limitKeyOfAddress(node) }
}

function entryOf(value: string, entry: Entry): string {
  const entries = value.split(',')
  return entries.at(entry === 'last' ? -1 : 0) ?? ''
}

/**
 * The address in one of the spellings of proxies: with or without port, zone, brackets and quotes. IPv4 in IPv6 is IPv4.
 * undefined where there is none.
 */
export function parseAddress(text: string): string | undefined {
  const bare = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5}|([^"[\]]*))$/.exec(unquoted(text.trim()))
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

const unquoted = (text: string): string => /^"(.*)"$/.exec(text)?.[1] ?? text

/** A pair of an element, or what is left empty between two semicolons. Addresses with a port are taken without quotes too. */
const PAIR = /[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)=([!#$%&'*+.^_`|~\w:[\]-]+|"(?:[^"\\]|\\.)*"))?[ \t]*(?:;|$)/y

/**
 * The node of `for=` in an element of `Forwarded` (RFC 7239), without an obfuscated port; empty where the element has none, has two,
 * or is not well-formed. An element ends at a comma in quotes too: which quotes are the proxy's is not certain, for a client may
 * have left one open before. What a proxy quotes leaves an odd quote behind such a comma, unless it copies quotes of a client too:
 * `host="a",for=8.8.8.8;b=""` is well-formed however it is read.
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
