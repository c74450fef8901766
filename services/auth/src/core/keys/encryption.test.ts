import { expect, test } from 'vitest'
import { createEncryption } from './encryption.ts'
import { parseEncryptionKeys, withUnnamed } from './encryption-keys.ts'
import { SEALED } from './sealed-columns.ts'

const ENCODED = Buffer.alloc(32, 7)
const OTHER = Buffer.alloc(32, 8).toString('base64')
const SECRET = 'a-secret-of-the-tests-with-32-bytes-or-more'

const encryptionOf = (keys: string | undefined, secret = SECRET) =>
  createEncryption({
    keys: withUnnamed(keys === undefined ? [] : parseEncryptionKeys(keys), secret),
  })

const factor = { id: '5b9f86c4-7b8e-4d0f-a6a1-4b8d4b6a1111', user_id: '5b9f86c4-7b8e-4d0f-a6a1-4b8d4b6a2222' }
const open = (encryption: ReturnType<typeof encryptionOf>, sealed_secret: string) =>
  encryption.open(SEALED.factorSecret, { ...factor, sealed_secret })

test('the first key encrypts, all decrypt, and the key without id is empty in the text', () => {
  const [one, two] = [
    encryptionOf(`a:${ENCODED.toString('base64')}`),
    encryptionOf(`b:${OTHER},a:${ENCODED.toString('hex')}`),
  ]
  const [byOne, byTwo] = [one, two].map((each) => each.seal(SEALED.factorSecret, factor, 'secret')) as [string, string]
  expect([byOne, byTwo]).toEqual([expect.stringMatching(/^v2\.a\./), expect.stringMatching(/^v2\.b\./)])
  expect([open(one, byOne), open(two, byOne), open(two, byTwo)]).toEqual(['secret', 'secret', 'secret'])
  expect(() => open(one, byTwo)).toThrow('sealed under the key b, which AUTH_ENCRYPTION_KEYS does not have')

  const unnamed = encryptionOf(undefined).seal(SEALED.factorSecret, factor, 'secret')
  expect(unnamed).toMatch(/^v2\.\./)
  expect(open(one, unnamed)).toBe('secret')
  const introduced = encryptionOf(`ENCRYPTION_KEY,a:${OTHER}`)
  expect([introduced.prefix, introduced.keys.map(({ id }) => id)]).toEqual([
    expect.stringMatching(/^v2\.\../),
    [null, 'a'],
  ])
})

test('a text without a prefix does not open', () => {
  const [, , withoutPrefix = ''] = encryptionOf(undefined).seal(SEALED.factorSecret, factor, 'secret').split('.')
  expect(() => open(encryptionOf(undefined), withoutPrefix)).toThrow('names no key')
  expect(() => open(encryptionOf(undefined), 'v2..AAAA')).toThrow('names no key')
})

test('an id that is none of ours is not repeated', () => {
  expect(() => open(encryptionOf(undefined), 'v2.<script>.AAAAAAAAAAAA')).toThrow('the key with a malformed id')
})

test.each([
  ['padded base64', ENCODED.toString('base64')],
  ['base64 without padding', ENCODED.toString('base64').replace('=', '')],
  ['base64url', ENCODED.toString('base64url')],
  ['hex digits', ENCODED.toString('hex')],
  ['hex digits in capitals', ENCODED.toString('hex').toUpperCase()],
])('a key may be written in %s', (_how, text) => {
  expect(parseEncryptionKeys(` 2026b : ${text} ,\n2026a:${OTHER}`)).toEqual([
    { id: '2026b', secret: ENCODED },
    { id: '2026a', secret: Buffer.from(OTHER, 'base64') },
  ])
})

test.each<[string, string, string]>([
  ['without an id', OTHER, 'must be id:key, id:key; entry 1 is not'],
  ['with an empty entry', `a:${OTHER},`, 'must be id:key, id:key; entry 2 is not'],
  ['with two colons', `a:b:${OTHER}`, 'must be id:key, id:key; entry 1 is not'],
  ['with an empty id', `:${OTHER}`, 'must have ids of 1 to 16 of a-z, 0-9 and the hyphen; that of entry 1 is not'],
  ['with a dot in the id', `a.b:${OTHER}`, 'must have ids'],
  ['with a capital in the id', `2026B:${OTHER}`, 'must have ids'],
  ['with an id of 17 characters', `${'a'.repeat(17)}:${OTHER}`, 'must have ids'],
  ['of 31 bytes', `a:${OTHER.slice(0, 42)}`, 'must have keys of 32 bytes in base64 or 64 hex digits; a is not'],
  ['of 33 bytes', `a:${Buffer.alloc(33).toString('base64')}`, 'must have keys of 32 bytes'],
  ['of 63 hex digits', `a:${'0'.repeat(63)}`, 'must have keys of 32 bytes'],
  [
    'with a character that is none of base64',
    `a:${OTHER.slice(0, 20)}!${OTHER.slice(20)}`,
    'must have keys of 32 bytes',
  ],
  ['under two ids', `a:${OTHER},b:${OTHER}`, 'must not hold one key under two ids'],
  ['beside one of the same id', `a:${OTHER},a:${ENCODED.toString('hex')}`, 'must not hold two keys with one id'],
  ['that is only the one without id', 'ENCRYPTION_KEY', 'must name at least one key as id:key'],
  ['beside the one without id twice', `ENCRYPTION_KEY,a:${OTHER},ENCRYPTION_KEY`, 'must not name ENCRYPTION_KEY twice'],
])('a key %s is refused, and not quoted', (_how, text, refusal) => {
  expect(() => parseEncryptionKeys(text)).toThrow(refusal)
  expect(() => parseEncryptionKeys(text)).not.toThrow(OTHER.slice(0, 20))
})
