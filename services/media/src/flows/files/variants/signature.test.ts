import { expect, test } from 'vitest'
import { isSigned, signVariant } from './signature.ts'

const KEY = '0123456789abcdef'
const PATH = '/w:320,h:180,fit:cover/aB3dE9xK.webp'

test('the signature is that of the documentation', () => {
  expect(signVariant(KEY, PATH)).toBe('euBnurCgV7QATWH74JhpnP')
})

test.each(['', 'x', 'x'.repeat(22), 'x'.repeat(2000), 'ü'.repeat(11)])(
  '%j is a wrong signature, of any length',
  (given) => {
    expect(isSigned([KEY], given, PATH)).toBe(false)
  },
)

test('each of several keys is right, and no other', () => {
  const old = 'fedcba9876543210'
  for (const key of [KEY, old]) expect(isSigned([KEY, old], signVariant(key, PATH), PATH)).toBe(true)
  expect(isSigned([KEY], signVariant(old, PATH), PATH)).toBe(false)
  expect(isSigned([], signVariant(KEY, PATH), PATH)).toBe(false)
  expect(isSigned([KEY], signVariant(KEY, PATH), PATH.replace('320', '321'))).toBe(false)
})
