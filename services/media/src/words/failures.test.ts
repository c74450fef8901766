// Refusals in the words of a reader.
import { expect, test } from 'vitest'
import { type ErrorCode, errorCatalogue } from '../errors.ts'
import { failureWords } from './failures.ts'

/** Refusals that the pages of a signed-in user meet. */
const MET: readonly ErrorCode[] = [
  ...([
    'album_full',
    'too_many_albums',
    'bulk_too_large',
    'archive_too_large',
    'album_changed',
    'clip_changed',
  ] as const),
  ...(['quota_exceeded', 'daily_bytes_exceeded', 'queue_full', 'rate_limited', 'busy', 'unavailable'] as const),
  ...(['session_required', 'wrong_origin', 'insufficient_scope', 'not_found', 'gone', 'hidden', 'internal'] as const),
]

test.for(['en', 'de'] as const)('refusals that the pages meet have a sentence in %s', (language) => {
  expect(MET.filter((code) => failureWords[language][code] === undefined)).toEqual([])
})

test('the languages have sentences for the same refusals, all of which exist', () => {
  const codes = Object.keys(failureWords.en)
  expect(Object.keys(failureWords.de)).toEqual(codes)
  expect(codes.filter((code) => code !== 'unreachable' && !(code in errorCatalogue))).toEqual([])
})
