import { expect, test } from 'vitest'
import { findWeaknesses, parseRequiredCharacters } from './password-rules.ts'

test.for<[string, string[]]>([
  ['', []],
  ['abc', ['abc']],
  ['abc:123', ['abc', '123']],
  [':abc::123:', ['abc', '123']],
  [':::', []],
  [' ', [' ']],
  ['abc: :123', ['abc', ' ', '123']],
  ['abc:!\\:?:123', ['abc', '!:?', '123']],
  ['\\:', [':']],
  ['\\::abc', [':', 'abc']],
  ['a\\:b\\:c', ['a:b:c']],
  ['abc:\\:', ['abc', ':']],
  ['a\\\\:b', ['a\\:b']],
  ['abc\\', ['abc\\']],
  ['a\\b:c', ['a\\b', 'c']],
  ['äö:😀é', ['äö', '😀é']],
])('required characters %j are the sets %j', ([setting, sets]) => {
  expect(parseRequiredCharacters(setting)).toEqual(sets)
})

test.for<[string, string[]]>([
  ['abc123', []],
  ['abcdef', ['characters']],
  ['123456', ['characters']],
  ['a1', ['length']],
  ['x', ['length', 'characters']],
  ['äöü1a', []],
])('the password %j breaks %j', ([password, reasons]) => {
  const rules = { minLength: 6, requiredCharacters: ['abc', '123'], refusesGuessable: false }
  expect(findWeaknesses(password, rules, { email: null, siteUrl: 'https://site.example' })).toEqual(reasons)
})
