import { expect, test } from 'vitest'
import { mailboxOf, parseEmail, shownEmail } from './email-address.ts'

test.for([
  ['Ada@Example.COM', 'ada@example.com'],
  ['root@localhost', 'root@localhost'],
  ["o'hara+news{1}@a-b.example", "o'hara+news{1}@a-b.example"],
  [`${'a'.repeat(243)}@example.com`, `${'a'.repeat(243)}@example.com`],
  [`a@${'b'.repeat(63)}.c`, `a@${'b'.repeat(63)}.c`],
  ['Info@Müller.example', 'info@xn--mller-kva.example'],
  ['info@mu\u0308ller.example', 'info@xn--mller-kva.example'],
  ['info@xn--MLLER-kva.example', 'info@xn--mller-kva.example'],
  ['a@straße.example', 'a@xn--strae-oqa.example'],
  ['a@例え.テスト', 'a@xn--r8jz45g.xn--zckzah'],
  ['a@пример.испытание', 'a@xn--e1afmkfd.xn--80akhbyknj4f'],
  ['a@مثال.إختبار', 'a@xn--mgbh0fb.xn--kgbechtv'],
  ['a@உதாரணம்.example', 'a@xn--zkc6cc5bi7f6e.example'],
  ['a@bä.c', 'a@xn--b-0fa.c'],
])('%j is kept as %j', ([typed, kept]) => {
  expect(parseEmail(typed as string)).toBe(kept)
})

test.for([
  ['ada+news@example.com', 'ada@example.com'],
  ['a.d.a@example.com', 'a.d.a@example.com'],
  ['a.d.a+x.y@gmail.com', 'ada@gmail.com'],
  ['ada@googlemail.com', 'ada@gmail.com'],
  ['a.da@mail.gmail.com', 'a.da@mail.gmail.com'],
  ['a.da@gmail.com.example', 'a.da@gmail.com.example'],
])('mails to %s count as mails to %s', ([address, mailbox]) => {
  expect(mailboxOf(address as string)).toBe(mailbox)
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
  // Another domain than it looks like, to a reader who does not map it.
  'a@ｇmail.com',
  'a@\u212aelvin.example',
  'a@gmail\u3002com',
  'a@ⓖmail.com',
  'a@mü%61ller.example',
  'a@mü/ller.example',
  'a@-ü.example',
  'a@ü-.example',
  'a@b.-ü.example',
  'a@ü..example',
  'a@\u0308.example',
  'a@ü@b.example',
  `a@${'ü'.repeat(63)}.example`,
  `a@${'b'.repeat(64)}.c`,
  `${'a'.repeat(244)}@example.com`,
])('%j is refused', (typed) => {
  expect(() => parseEmail(typed)).toThrow(expect.objectContaining({ status: 400, code: 'validation_failed' }))
})

test.for([
  ['info@xn--mller-kva.example', 'info@müller.example'],
  ['ada@example.com', 'ada@example.com'],
  ['a@sub.xn--r8jz45g.xn--zckzah', 'a@sub.例え.テスト'],
  ['a@xn--a.example', 'a@xn--a.example'],
  ['xn--a@example.com', 'xn--a@example.com'],
  ['', ''],
])('%j is shown as %j', ([kept, shown]) => {
  expect(shownEmail(kept as string)).toBe(shown)
})
