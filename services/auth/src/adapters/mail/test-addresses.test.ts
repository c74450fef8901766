import { expect, test } from 'vitest'
import { parseTestAddresses } from './test-addresses.ts'

test('test addresses are read as addresses are stored, with their codes', () => {
  const codes = parseTestAddresses(' Ada@Example.com:123456 , bob+label@müller.example = 000000,')
  expect([...codes]).toEqual([
    ['ada@example.com', '123456'],
    ['bob+label@xn--mller-kva.example', '000000'],
  ])
  expect(parseTestAddresses('').size).toBe(0)
})

test.for([
  'ada@example.com',
  'ada@example.com:',
  'ada@example.com:12345',
  'ada:123456',
  ':123456',
  'a@b.example:12a456',
  '*@b.example:123456',
  'a@b.example:123456,A@B.example:654321',
])('MAILER_TEST_OTP %s is refused, without being quoted', (text) => {
  expect(() => parseTestAddresses(text)).toThrow(
    /^must be address:code pairs separated by commas, each address once and without \*, codes of 6 to 10 digits$/,
  )
})
