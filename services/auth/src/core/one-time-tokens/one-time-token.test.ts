import { expect, test } from 'vitest'
import { randomDigits } from './one-time-token.ts'

test.for([6, 8, 10])('a code of %i digits has as many, zeros in front included', (length) => {
  expect(randomDigits((size) => Buffer.alloc(size), length)).toBe('0'.repeat(length))
})

test('bytes that would make low digits likelier are passed over', () => {
  const bytes = [255, 250, 249, 9, 10, 123, 252, 0, 200, 201, 202, 203]
  expect(randomDigits((size) => Buffer.from(bytes.slice(0, size)), 6)).toBe('990300')
})
