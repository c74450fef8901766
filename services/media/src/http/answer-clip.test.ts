import { expect, test } from 'vitest'
import { parsePreference } from './answer-clip.ts'

test.each([
  [undefined, false, undefined],
  ['', false, undefined],
  ['respond-async', true, undefined],
  ['Respond-Async, wait=10', true, 10],
  ['wait=5; respond-async', true, 5],
  ['return=minimal', false, undefined],
  ['wait=x', false, undefined],
  ['x-respond-async', false, undefined],
])('Prefer: %s', (header, respondAsync, waitSeconds) => {
  expect(parsePreference(header)).toEqual({ respondAsync, waitSeconds })
})
