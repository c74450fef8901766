import { expect, test } from 'vitest'
import { isDatabaseUnavailable } from './errors.ts'

const failureOf = (code: string) => Object.assign(new Error('any text'), { code, syscall: 'connect' })

test.each([
  ...['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ETIMEDOUT', 'EAI_AGAIN'],
  ...['08006', '57P01', '57P02', '57P03', '57P04', '57P05', '53100', '53200', '53300', '25006', '25P03', '25P04'],
  ...['57014', '55P03', '40P01', '40001', '26000', '42P05'],
])('%s means an unavailable database, even as a cause', (code) => {
  expect(isDatabaseUnavailable(failureOf(code))).toBe(true)
  expect(isDatabaseUnavailable(new Error('refused', { cause: failureOf(code) }))).toBe(true)
})

test.each(['23505', '42P01', '22P02', '42601', 'EACCES', 'DEPTH_ZERO_SELF_SIGNED_CERT'])('%s is not', (code) => {
  expect(isDatabaseUnavailable(failureOf(code))).toBe(false)
})
