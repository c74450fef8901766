import { expect, test } from 'vitest'
import { importSigningKeys } from './signing-keys.ts'

test.for<[string, number, boolean]>([
  ['an ordinary token is', 100, true],
  ['a token with much metadata is not', 40_000, false],
])('%s remembered once it was verified, and is valid each time', async ([, size, isRemembered]) => {
  const keys = await importSigningKeys({ secret: 'a-secret-of-the-tests-with-32-bytes-or-more' })
  const claims = { sub: 'somebody', user_metadata: { note: 'x'.repeat(size) } }
  const token = await keys.sign(claims)
  const [first, second] = [await keys.verify(token, new Date()), await keys.verify(token, new Date())]
  expect([first, second]).toEqual([claims, claims])
  expect(first === second).toBe(isRemembered)
})
