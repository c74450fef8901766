import { expect, test } from 'vitest'
import { parsePhone } from './phone-number.ts'

test.each([
  ['+1 23456789 ', '123456789'],
  ['491512345678', '491512345678'],
  ['+49 151 23 45', '491512345'],
  ['123456789012345', '123456789012345'],
])('%j is the number %s', (phone, digits) => expect(parsePhone(phone)).toBe(digits))

test.each(['', '+', '0151', '++49151', '49-151', '(49)151', '1', '1234567890123456', '49151\n', '４９１５１'])(
  '%j is refused',
  (phone) => expect(() => parsePhone(phone)).toThrow('E.164'),
)
