import { expect, test } from 'vitest'
import { parseEmail } from './email-address.ts'

test.for([
  ['Ada@Example.COM', 'ada@example.com'],
  ['root@localhost', 'root@localhost'],
  ["o'hara+news{1}@a-b.example", "o'hara+news{1}@a-b.example"],
  [`${'a'.repeat(243)}@example.com`, `${'a'.repeat(243)}@example.com`],
  [`a@${'b'.repeat(63)}.c`, `a@${'b'.repeat(63)}.c`],
])('%j is kept as %j', ([typed, kept]) => {
  expect(parseEmail(typed as string)).toBe(kept)
})

test.for([
  '',
  'a',
  '@b.c',
  'a@',
  'a@b@c',
  'a b@c.d',
  ' a@b.c',
  'a@b.c\n',
  'a@-b.c',
  'a@b-.c',
  'a@b..c',
  'a@b.c.',
  'a@[127.0.0.1]',
  '"a b"@c.d',
  'ä@b.c',
  'a@bä.c',
  `a@${'b'.repeat(64)}.c`,
  `${'a'.repeat(244)}@example.com`,
])('%j is refused', (typed) => {
  expect(() => parseEmail(typed)).toThrow(expect.objectContaining({ status: 400, code: 'validation_failed' }))
})
