// Hostile request heads for a raw socket. The same seed makes the same head, so that a failure can be repeated. They
// are sent by hostile-headers.slow.test.ts of each service.
import { type Random, randomFrom } from '../seeded-random.ts'
import { HOSTILE_TEXTS } from './hostile-values.ts'
import type { RawAnswer } from './raw-http.ts'

/** Headers that parsers, proxies and frameworks interpret. */
const COMMON_NAMES = [
  ...['Content-Length', 'Transfer-Encoding', 'Content-Type', 'Content-Encoding', 'Trailer', 'TE', 'Expect', 'Upgrade'],
  ...['Host', 'Connection', 'Keep-Alive', 'Accept', 'Accept-Encoding', 'Accept-Language', 'Cookie', 'Cache-Control'],
  ...['Origin', 'Access-Control-Request-Method', 'Access-Control-Request-Headers', 'Sec-Fetch-Mode', 'Referer'],
  ...['Forwarded', 'X-Forwarded-For', 'X-Forwarded-Host', 'X-Forwarded-Proto', 'X-Real-IP', 'X-Request-Id', 'Via'],
  ...['Authorization', 'User-Agent', 'X-HTTP-Method-Override', 'Purpose', 'traceparent', 'baggage', '__proto__'],
]

const VALUES = [
  ...['', ' ', '\t', '0', '-1', '+5', '0x5', '5, 5', '1e3', '007', '99999999999999999999', '*', ',,,,', ';', '=', '"'],
  ...[
    'chunked',
    'Chunked, identity',
    'xchunked',
    'gzip, chunked',
    'chunked\t',
    'close, upgrade',
    '100-continue',
    'h2c',
  ],
  ...['Bearer', 'Bearer ', 'Bearer a.b.c', 'bearer e30.e30.', 'Basic Og==', `Bearer ${'x'.repeat(9_000)}`],
  ...[
    'bytes=0-',
    'bytes=-1',
    `bytes=${'0-0,'.repeat(1_000)}`,
    'bytes=18446744073709551616-',
    'bytes=\xff-',
    'W/"',
    '"\xff"',
  ],
  ...['application/json;charset=', 'application/json; charset=utf-7', 'multipart/form-data; boundary="', 'text/html;q'],
  ...['de;q=2', 'de;q=NaN,*;q=-1', `${'a-'.repeat(2_000)}`, `${'a;q=0.1,'.repeat(500)}`],
  ...[
    '::1',
    '[::1]:99999',
    '1.2.3.4, 5.6.7.8',
    'fe80::1%eth0',
    '256.1.1.1',
    'for="[::1]";by=x',
    'evil.example@site.example',
  ],
  ...['\0', '\x7f', '\x80\xff', 'a\nb', 'a\rb', 'a\r\n b', 'a\r\nX-Other: b', 'x'.repeat(8_000)],
  ...['Thu, 01 Jan 1970 00:00:00 GMT', 'Thu, 99 Foo 0000 99:99:99 XXX', `00-${'0'.repeat(32)}-${'0'.repeat(16)}-ff`],
  // The bytes of their UTF-8.
  ...HOSTILE_TEXTS.filter((text) => text.length < 10_000).map((text) => Buffer.from(text).toString('latin1')),
]

const METHODS = ['GET', 'GET', 'GET', 'POST', 'POST', 'POST', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS']
const ODD_METHODS = ['TRACE', 'CONNECT', 'PRI', 'get', 'M-SEARCH', 'QUERY', 'X', '']
const ODD_VERSIONS = ['HTTP/1.0', 'HTTP/2.0', 'HTTP/9.9', 'HTTP/1.10', 'http/1.1', '']
const ODD_SEPARATORS = [':', ' : ', ':\t', '', ':\0']

interface HostileTarget {
  paths: readonly string[]
  /** Headers that the service reads, with valid values. */
  headers: Record<string, readonly string[]>
  body: string
}

/** Makes a request with a hostile head, which closes the connection. */
export function hostileRequest({ paths, headers, body }: HostileTarget, seed: number): string {
  const random = randomFrom(seed)
  const names = Object.keys(headers)
  const method = random.chance(0.93) ? random.pick(METHODS) : random.pick(ODD_METHODS)
  const version = random.chance(0.95) ? 'HTTP/1.1' : random.pick(ODD_VERSIONS)
  const lines = ['Connection: close', ...(random.chance(0.97) ? ['Host: a'] : [])]
  // One to six hostile headers beside valid ones.
  for (const name of names) {
    if (random.chance(0.6)) lines.push(`${name}: ${random.pick(headers[name] as readonly string[])}`)
  }
  for (let left = 1 + random.below(6); left > 0; left--) {
    const name = random.chance(0.6) && names.length > 0 ? random.pick(names) : random.pick(COMMON_NAMES)
    lines.push(lineOf(name, random))
  }
  const sent = random.chance(0.7) ? body : ''
  if (sent !== '' && random.chance(0.9)) lines.push(`Content-Length: ${Buffer.byteLength(sent, 'latin1')}`)
  return `${method} ${random.pick(paths)} ${version}\r\n${lines.join('\r\n')}\r\n\r\n${sent}`
}

/** Whether the answer is no server error, and JSON if it claims to be. */
export function isWellAnswered({ status, head, body }: RawAnswer): boolean {
  const isJson = /^content-type: application\/json/im.test(head)
  return status >= 200 && status < 500 && (!isJson || body === '' || Boolean(JSON.parse(body)))
}

function lineOf(name: string, random: Random): string {
  const separator = random.chance(0.95) ? ': ' : random.pick(ODD_SEPARATORS)
  const value = random.chance(0.8) ? random.pick(VALUES) : bytesOf(random)
  const line = `${random.chance(0.9) ? name : name.toUpperCase()}${separator}${value}`
  return random.chance(0.1) ? `${line}\r\n${line}` : line
}

/** Random bytes, mostly valid in a header: the parser refuses the others. */
const bytesOf = (random: Random) =>
  Array.from({ length: random.below(60) }, () => {
    const code = random.chance(0.97) ? 0x20 + random.below(0xdf) : random.below(0x20)
    return String.fromCharCode(code === 0x7f ? 0x20 : code)
  }).join('')

/**
 * Ambiguous framings that hide a second request, which a proxy would take for a body, or a body that it would take for
 * a request. `start` has the request line and headers of a request with a body, without the last line end.
 */
export const SMUGGLED: [name: string, bytes: (start: string) => string][] = (() => {
  const hidden = 'GET /health HTTP/1.1\r\nHost: hidden\r\n\r\n'
  const framed = (headers: string, body: string) => (start: string) => `${start}\r\n${headers}\r\n\r\n${body}`
  const length = Buffer.byteLength(hidden)
  const chunked = `0\r\n\r\n${hidden}`
  return [
    ['a length and chunks', framed(`Content-Length: ${chunked.length}\r\nTransfer-Encoding: chunked`, chunked)],
    ['chunks and a length', framed(`Transfer-Encoding: chunked\r\nContent-Length: ${chunked.length}`, chunked)],
    ['two lengths', framed(`Content-Length: 0\r\nContent-Length: ${length}`, hidden)],
    ['two lengths in one', framed(`Content-Length: 0, ${length}`, hidden)],
    ['a length with a sign', framed(`Content-Length: +${length}`, hidden)],
    ['a length in hexadecimal', framed(`Content-Length: 0x${length.toString(16)}`, hidden)],
    ['a length before a colon', framed(`Content-Length : ${length}`, hidden)],
    ['a length on the next line', framed(`Content-Length:\r\n ${length}`, hidden)],
    ['chunks of a kind that is none', framed('Transfer-Encoding: xchunked', chunked)],
    ['chunks that are not the last coding', framed('Transfer-Encoding: chunked, identity', chunked)],
    ['chunks named after a tab in front of a colon', framed('Transfer-Encoding\t: chunked', chunked)],
    ['a line end that is half of one', framed(`X: a\nContent-Length: ${length}`, hidden)],
    ['a line end that is the other half', framed(`X: a\rContent-Length: ${length}`, hidden)],
    ['NUL in a name', framed(`Content-Length\0: ${length}`, hidden)],
    ['a chunk of a negative length', framed('Transfer-Encoding: chunked', `-1\r\n\r\n${chunked}`)],
    ['a chunk whose length has a line end of its own', framed('Transfer-Encoding: chunked', `0;\n\r\n\r\n${hidden}`)],
  ]
})()
