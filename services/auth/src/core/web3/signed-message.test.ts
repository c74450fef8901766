import { ApiError } from '@services/common/errors'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { readMessage } from './signed-message.ts'

const ADDRESS = { ethereum: `0x${'aB'.repeat(20)}`, solana: '9xQeWvG816bUx9EPjHmaT23yvVM2ZWbrrpZb9PusVFin' }
const FIELDS = ['URI: https://site.example/', 'Version: 1', 'Chain ID: 1', 'Issued At: 2026-11-28T12:00:00Z']

const messageOf = (chain: 'ethereum' | 'solana', lines: readonly string[]) =>
  [
    `site.example wants you to sign in with your ${chain === 'ethereum' ? 'Ethereum' : 'Solana'} account:`,
    ADDRESS[chain],
    '',
    ...lines,
  ].join('\n')

const fault = (text: string, chain: 'ethereum' | 'solana' = 'ethereum') => {
  try {
    readMessage(text, chain)
  } catch (error) {
    if (error instanceof ApiError) return error.message
    throw error
  }
  return undefined
}

describe('reads a message', () => {
  test('of Ethereum with all of its fields', () => {
    const text = messageOf('ethereum', [
      ...['I accept: the terms', ''],
      ...[
        'URI: https://site.example/a:b',
        'Version: 1',
        'Chain ID: 137',
        'Nonce: abc',
        'Issued At: 2026-11-28T12:00:00.123Z',
      ],
      ...['Expiration Time: 2026-11-28T14:00:00+01:00', 'Not Before: 2026-11-28T12:00:00Z', 'Request ID: 1: 2'],
      ...['Resources:', '- ipfs://a', '- https://site.example/'],
    ])
    expect(readMessage(text, 'ethereum')).toEqual({
      bytes: Buffer.from(text),
      domain: 'site.example',
      address: ADDRESS.ethereum,
      statement: 'I accept: the terms',
      uri: 'https://site.example/a:b',
      chainId: '137',
      nonce: 'abc',
      issuedAt: new Date('2026-11-28T12:00:00.123Z'),
      expiresAt: new Date('2026-11-28T13:00:00Z'),
      notBefore: new Date('2026-11-28T12:00:00Z'),
    })
  })

  test.for<[string, string[]]>([
    ['without a statement', FIELDS],
    ['with two blank lines in place of one', ['', ...FIELDS]],
    ['with an unknown field', [...FIELDS, 'Colour: red']],
    ['with empty lines between', ['', ...FIELDS.flatMap((line) => [line, ''])]],
  ])('of Ethereum %s', ([, lines]) => {
    expect(readMessage(messageOf('ethereum', lines), 'ethereum').statement).toBe('')
  })

  test.for<string[]>([
    ['Version: 1', 'URI: https://site.example/', 'Issued At: 2026-11-28T12:00:00Z'],
    [...FIELDS.with(2, 'Chain ID: solana:devnet')],
    // The client writes this line without a colon.
    [...FIELDS.with(2, ''), 'Resources', '- https://site.example/'],
  ])('of Solana: %j', (lines) => {
    expect(fault(messageOf('solana', lines), 'solana')).toBeUndefined()
  })

  test.for(['localhost', 'localhost:3000', 'a-b.example:65535', 'xn--mller-kva.example', 'a.xn--p1ai', 'SITE.example'])(
    'of the domain %s',
    (domain) => {
      const text = messageOf('ethereum', FIELDS).replace('site.example', domain)
      expect(readMessage(text, 'ethereum').domain).toBe(domain)
    },
  )
})

const without = (start: string) => FIELDS.filter((line) => !line.startsWith(start))
const replaced = (start: string, line: string) => [...without(start), line]
const LONG = 'a'.repeat(20_000)

describe('refuses', () => {
  test.for<[string, string[]]>([
    ['message needs at least 6 lines', FIELDS.slice(0, 2)],
    ['encountered unparsable line at index 7', [...FIELDS, 'no colon']],
    ['encountered unparsable line at index 3', ['- no list', ...FIELDS]],
    ['URI is not specified', [...without('URI'), '']],
    ['URI is not valid', replaced('URI', 'URI: /path')],
    ['URI is not valid', replaced('URI', 'URI: https://')],
    ['URI is specified more than once', [...FIELDS, 'URI: https://evil.example/']],
    ['Chain ID is specified more than once', [...FIELDS, 'Chain ID: 2']],
    ['Version value is not supported, expected 1 got ""', [...without('Version'), '']],
    ['Version value is not supported, expected 1 got "2"', replaced('Version', 'Version: 2')],
    [`Version value is not supported, expected 1 got "${'a'.repeat(20)}"`, replaced('Version', `Version: ${LONG}`)],
    ['Chain ID is not valid', replaced('Chain ID', 'Chain ID: 0')],
    ['Chain ID is not valid', replaced('Chain ID', 'Chain ID: 0x1')],
    ['Chain ID is not valid', [...without('Chain ID'), '']],
    ['Issued At is not specified', [...without('Issued At'), '']],
    ['Issued At is not a valid ISO8601 timestamp', replaced('Issued At', 'Issued At: yesterday')],
    ['Issued At is not a valid ISO8601 timestamp', replaced('Issued At', 'Issued At: 2026-02-30T12:00:00Z')],
    ['Issued At is not a valid ISO8601 timestamp', replaced('Issued At', 'Issued At: 2026-11-28T12:00:00')],
    ['Issued At is not a valid ISO8601 timestamp', replaced('Issued At', 'Issued At: 2026-11-28T24:00:00Z')],
    ['Not Before is not a valid ISO8601 timestamp', [...FIELDS, 'Not Before: 2026-11-28']],
    ['Expiration Time is not a valid ISO8601 timestamp', [...FIELDS, 'Expiration Time:']],
    ['Issued At is after Expiration Time', [...FIELDS, 'Expiration Time: 2026-11-28T11:59:59Z']],
    [
      'Not Before is after Expiration Time',
      [...FIELDS, 'Not Before: 2026-11-28T14:00:00Z', 'Expiration Time: 2026-11-28T13:00:00Z'],
    ],
    ['Resource at position 1 has invalid URI', [...FIELDS, 'Resources:', '- https://a.example', '- b']],
    ['message is not text', [...FIELDS, 'Request ID: \0']],
    ['message is not text', [...FIELDS, 'Request ID: \ud800']],
  ])('%s', ([expected, lines]) => {
    expect(fault(messageOf('ethereum', lines))).toBe(`siwe: ${expected}`)
  })

  test.for<[string, string, string]>([
    [
      'wants you to',
      'wants  you to',
      'message first line does not end in " wants you to sign in with your Ethereum account:"',
    ],
    [
      'account:',
      'account:\r',
      'message first line does not end in " wants you to sign in with your Ethereum account:"',
    ],
    ['site.example', 'https://site.example', 'domain in first line of message is not valid'],
    ['site.example', 'site', 'domain in first line of message is not valid'],
    ['site.example', 'site.e', 'domain in first line of message is not valid'],
    ['site.example', '127.0.0.1', 'domain in first line of message is not valid'],
    ['site.example', 'site.example:', 'domain in first line of message is not valid'],
    ['site.example', 'user@site.example', 'domain in first line of message is not valid'],
    ['site.example', 'site\u202e.example', 'domain in first line of message is not valid'],
    ['site.example', `${'a.'.repeat(9_000)}example`, 'domain in first line of message is not valid'],
    [ADDRESS.ethereum, ADDRESS.ethereum.slice(0, -1), 'wallet address is not a valid Ethereum address'],
    [ADDRESS.ethereum, ADDRESS.solana, 'wallet address is not a valid Ethereum address'],
    [`${ADDRESS.ethereum}\n\n`, `${ADDRESS.ethereum}\nnext\n`, 'third line must be empty'],
  ])('%j as %j', ([given, instead, expected]) => {
    expect(fault(messageOf('ethereum', FIELDS).replace(given, instead))).toBe(`siwe: ${expected}`)
  })

  test.for<[string, string]>([
    ['Chain ID is not valid', messageOf('solana', FIELDS)],
    ['wallet address is not in base58 format', messageOf('solana', FIELDS).replace(ADDRESS.solana, 'O'.repeat(40))],
    ['wallet address is not in base58 format', messageOf('solana', FIELDS).replace(ADDRESS.solana, '1'.repeat(45))],
  ])('of Solana: %s', ([expected, text]) => {
    expect(fault(text, 'solana')).toBe(`siws: ${expected}`)
  })
})

test('no text fails in another way than by a refusal', () => {
  const line = fc.oneof(
    fc.constantFrom(
      ...FIELDS,
      'Resources:',
      'Resources',
      '- https://a.example/',
      '- ',
      ':',
      ' : ',
      '',
      'URI:',
      '\0',
      LONG,
    ),
    fc.string({ unit: 'binary' }),
  )
  const lines = fc.array(line, { maxLength: 20 })
  fc.assert(
    fc.property(lines, fc.constantFrom('ethereum', 'solana'), fc.boolean(), (given, chain, isHeaded) => {
      fault(isHeaded ? messageOf(chain, given) : given.join('\n'), chain)
    }),
    { numRuns: 500 },
  )
})
