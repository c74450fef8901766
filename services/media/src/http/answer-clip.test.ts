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
  expect(parsePreference(header)).toEqual({ respondAsync, waitSeconds, mp4First: false, deleteLink: false })
})

test('Prefer: delete-link, wait=5', () => {
  expect(parsePreference('delete-link, wait=5')).toMatchObject({ deleteLink: true, waitSeconds: 5 })
})

test.each([
  ['wait-for=mp4', true],
  ['wait=9, Wait-For="mp4"', true],
  ['wait-for=webm', false],
  ['wait-for', false],
  ['no-wait-for=mp4', false],
])('Prefer: %s', (header, mp4First) => {
  expect(parsePreference(header)).toMatchObject({ mp4First, respondAsync: false })
})
