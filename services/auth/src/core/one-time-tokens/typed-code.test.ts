import { expect, test } from 'vitest'
import { typedCode } from './typed-code.ts'

test.for([
  '123 456',
  ' 123456\r\n',
  '\t12 34 56',
  '123-456',
  '123\u2011456',
  '123 – 456',
  '123\u2212456',
  '123\u00a0456',
  '\u200b123456\ufeff',
  '\u2068123\u202f456\u2069',
  '123\u3000456',
  '１２３－４５６',
])('%j is typed for 123456', (text) => {
  expect(typedCode(text)).toBe('123456')
})

test.for(['123.456', '123456a', '', 'abc', '123_456', `${'1'.repeat(60)}     `])('%j stays another code', (text) => {
  expect(typedCode(text)).toBe(text)
})
