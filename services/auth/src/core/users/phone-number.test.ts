import { expect, test } from 'vitest'
import { normalisePhone, parsePhone } from './phone-number.ts'

test.for<[string, string]>([
  ['+4915100000001', '4915100000001'],
  ['4915100000001', '4915100000001'],
  ['+49 151 0000 0001', '4915100000001'],
  [' +49151 ', '49151'],
  ['12', '12'],
  ['123456789012345', '123456789012345'],
])('%j is the number %s', ([typed, digits]) => {
  expect(parsePhone(typed)).toBe(digits)
  expect(normalisePhone(typed)).toBe(digits)
})

test.for([
  '',
  ' ',
  '+',
  '1',
  '1234567890123456',
  '0049151',
  '+0151',
  '++49151',
  '49+151',
  '49-151',
  '49.151',
  '(49)151',
  '49\t151',
  '49151\n',
  '٤٩١٥١',
  'phone',
  `49151${' '.repeat(1_000)}`,
])('%j is no number', (typed) => {
  expect(() => parsePhone(typed)).toThrow(expect.objectContaining({ code: 'validation_failed', status: 400 }))
})

test('a sign-in looks up the typed text, valid number or not', () => {
  expect([normalisePhone('+49-151'), normalisePhone('abc'), normalisePhone('1'.repeat(10_000))]).toEqual([
    '49-151',
    'abc',
    '',
  ])
})
