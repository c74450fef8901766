import Fastify from 'fastify'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { parseAddress, readTrustedHeader } from './client-address.ts'

const lines: { header: string; msg: string }[] = []
const write = (line: string) => void lines.push(JSON.parse(line))
const app = Fastify({ logger: { level: 'warn', stream: { write } } })
app.get('/:header', (request) => {
  const { header } = request.params as { header: string }
  return readTrustedHeader(request, header, header === 'first' ? 'first' : 'last') ?? {}
})
afterAll(() => app.close())
beforeEach(() => lines.splice(0))

const ask = async (header: string, value?: string | string[]) =>
  (await app.inject({ url: `/${header}`, headers: value === undefined ? {} : { [header]: value } })).json()

test.for<[string, string | undefined]>([
  ['192.0.2.1', '192.0.2.1'],
  [' 192.0.2.1 ', '192.0.2.1'],
  ['192.0.2.1:40001', '192.0.2.1'],
  ['"192.0.2.1:40001"', '192.0.2.1'],
  ['2001:db8::1', '2001:db8::1'],
  ['2001:DB8:0:0::1', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['[2001:db8::1]:443', '2001:db8::1'],
  ['"[2001:db8::1]:443"', '2001:db8::1'],
  ['fe80::1%eth0', 'fe80::1'],
  ['[fe80::1%eth0]:5', 'fe80::1'],
  ['::ffff:192.0.2.1', '192.0.2.1'],
  ['[::ffff:c000:201]:5', '192.0.2.1'],
  ['', undefined],
  ['unknown', undefined],
  ['_hidden', undefined],
  ['unix:', undefined],
  ['localhost:80', undefined],
  ['192.0.2.1:', undefined],
  ['192.0.2.1:port', undefined],
  ['192.0.2.1:999999', undefined],
  ['192.0.2.256', undefined],
  ['192.0.2.1 10.0.0.1', undefined],
  ['[192.0.2.1]x', undefined],
  ['[2001:db8::1', undefined],
  ['"192.0.2.1', undefined],
  ['192.0.2.1"', undefined],
  ['3232235777', undefined],
  ['0x7f.1', undefined],
])('%j is the address %j', ([text, address]) => {
  expect(parseAddress(text)).toBe(address)
})

describe('of a trusted header, the client is read from', () => {
  test.for<[string, string, string | string[], string | undefined]>([
    ['the only entry', 'x-real-ip', '192.0.2.1', '192.0.2.1'],
    ['the entry of the nearest proxy, the last', 'x-forwarded-for', '8.8.8.8, 10.1.1.1:9, 192.0.2.1:7', '192.0.2.1'],
    ['the last of several headers', 'x-forwarded-for', ['8.8.8.8', '192.0.2.1'], '192.0.2.1'],
    ['no earlier entry, where the last is no address', 'x-forwarded-for', '8.8.8.8, unknown', undefined],
    ['no earlier entry, where the last is empty', 'x-forwarded-for', '8.8.8.8,', undefined],
    ['the first entry, where that is asked for', 'first', '192.0.2.1:7, 10.0.0.1', '192.0.2.1'],
    ['the node of Forwarded', 'forwarded', 'for=8.8.8.8, for="[2001:db8::1]:47";proto=https', '2001:db8::1'],
    ['the node of Forwarded without quotes', 'forwarded', 'proto=https; For=192.0.2.1:47', '192.0.2.1'],
    ['nothing of Forwarded without a node', 'forwarded', 'for=8.8.8.8, proto=https', undefined],
    ['nothing of Forwarded with a hidden node', 'forwarded', 'for=8.8.8.8, for=_hidden', undefined],
    ["no quote of a client around the proxy's entry", 'forwarded', 'for=8.8.8.8;x=", for="192.0.2.1"', '192.0.2.1'],
    ['no host that the proxy quotes', 'forwarded', 'for=192.0.2.1;host="a,for=8.8.8.8;b=c"', undefined],
    ['the last of several lines of Forwarded', 'forwarded', ['for=8.8.8.8', 'for=192.0.2.1'], '192.0.2.1'],
  ])('%s', async ([, header, value, address]) => {
    expect((await ask(header, value)).address).toBe(address)
  })
})

test.for<[string, string | undefined]>([
  ['for=192.0.2.1', '192.0.2.1'],
  ['For=192.0.2.1', '192.0.2.1'],
  ['FOR="192.0.2.1"', '192.0.2.1'],
  ['for=192.0.2.1;', '192.0.2.1'],
  [';for=192.0.2.1;;proto=https;', '192.0.2.1'],
  [';;;', undefined],
  [' \t for=192.0.2.1 ; proto=https \t', '192.0.2.1'],
  ['for = 192.0.2.1', undefined],
  ['for= 192.0.2.1', undefined],
  ['for="192.0.2.1:47011"', '192.0.2.1'],
  ['for=192.0.2.1:47011', '192.0.2.1'],
  ['for="192.0.2.1:_port-1"', '192.0.2.1'],
  ['for="192.0.2.1:"', undefined],
  ['for="192.0.2.1:port"', undefined],
  ['for="192.0.2.\\1"', '192.0.2.1'],
  ['for="[2001:db8:cafe::17]"', '2001:db8:cafe::17'],
  ['for="[2001:DB8:cafe::17]:4711"', '2001:db8:cafe::17'],
  ['for="[2001:db8:cafe::17]:_p"', '2001:db8:cafe::17'],
  ['for=[2001:db8:cafe::17]:4711', '2001:db8:cafe::17'],
  ['for="2001:db8:cafe::17"', '2001:db8:cafe::17'],
  ['for="[2001:db8:cafe::17"', undefined],
  ['for="::ffff:192.0.2.1"', '192.0.2.1'],
  ['for=unknown', undefined],
  ['for=_hidden', undefined],
  ['for="_SEVKISEK"', undefined],
  ['for=""', undefined],
  ['for=', undefined],
  ['for', undefined],
  ['for=192.0.2.1;for=192.0.2.2', undefined],
  ['for=192.0.2.1;by=203.0.113.43;ext=a!b', '192.0.2.1'],
  ['by="[2001:db8::2]";for=192.0.2.1', '192.0.2.1'],
  ['proto=https', undefined],
  ['for=192.0.2.1;host="quoted \\" , for=8.8.8.8"', undefined],
  ['for=192.0.2.1;host="quoted \\";for=8.8.8.8"', '192.0.2.1'],
  ['for=192.0.2.1;host="ends with \\\\"', '192.0.2.1'],
  ['for=192.0.2.1;host="', undefined],
  // A host that a proxy quotes, whatever is in it: quotes of its own are escaped, or refused.
  ['for=192.0.2.1;host="a,for=8.8.8.8"', undefined],
  ['for=192.0.2.1;host="a,for=8.8.8.8;b="', undefined],
  ['for=192.0.2.1;host="a,for=8.8.8.8;b=";proto="https"', undefined],
  ['for=192.0.2.1;host="a,for=8.8.8.8;b=\\""', undefined],
  ['for=192.0.2.1;host="a,for=8.8.8.8;b=\\"c\\""', undefined],
  ['for=192.0.2.1;host="a\\",for=8.8.8.8;b=\\""', undefined],
  ['for=192.0.2.1 proto=https', undefined],
  ['for="192.0.2.1', undefined],
  ['for=192.0.2.1"', undefined],
  ["for='192.0.2.1'", undefined],
  ['192.0.2.1', undefined],
])('Forwarded: %s names the client %j', async ([value, address]) => {
  expect((await ask('forwarded', value)).address).toBe(address)
  expect((await ask('forwarded', `for=8.8.8.8;x=", ${value}`)).address).toBe(address)
})

test('all spellings of an address share a limit key, and each IPv6 /64 has its own', async () => {
  const keyOf = async (value: string) => (await ask('x-real-ip', value)).limitKey
  const keys = (values: string[]) => Promise.all(values.map(keyOf))
  const same = [
    ['192.0.2.1', '192.0.2.1:5', '192.0.2.1:6', '::ffff:192.0.2.1', '[::ffff:192.0.2.1]:7'],
    ['2001:db8:1:2::1', '[2001:db8:1:2::9]:5', '[2001:DB8:1:2:ffff::]:6', '2001:db8:1:2::1%eth0'],
    ['unknown', 'nonsense', '_hidden', ' , '],
  ]
  const distinct = []
  for (const values of same) {
    const [first, ...others] = await keys(values)
    expect(new Set(others)).toEqual(new Set([first]))
    distinct.push(first)
  }
  expect(new Set([...distinct, await keyOf('2001:db8:1:3::1'), await keyOf('192.0.2.2')]).size).toBe(5)
})

test('a missing header and one without an address are logged once per server, without the value', async () => {
  const values = ['secret-1', undefined, 'secret-2', undefined, 'secret-3']
  for (const value of values) await ask('x-once', value)
  expect(lines.map(({ header, msg }) => [header, msg.slice(0, msg.indexOf(':'))])).toEqual([
    ['x-once', 'trusted address header holds no address'],
    ['x-once', 'request without the trusted address header'],
  ])
  expect(JSON.stringify(lines)).not.toContain('secret')
})
