import { expect, test } from 'vitest'
import { brokenRules } from './words.ts'

test.each([
  ['a subject that is no thing', '// Whoever asks too often waits.', 'Whoever'],
  ['a comment that begins with a preposition', '/** Of who asks. */', 'begins with'],
  ['a word that the glossary replaces', '/** Number of misses before a wait. */', 'misses'],
  ['a clause instead of a noun', '// Keeps nothing of what is over.', 'of what'],
  ['an error text', "throw new Error('nobody has this address')", 'nobody'],
  ['a sentence that is too long', `// ${'word '.repeat(33)}end.`, 'sentence of 34 words'],
])('%s is reported', (_rule, source, found) => {
  expect(brokenRules('a.ts', `${source}\n`).join('\n')).toContain(found)
})

test('code, quoted names and plain sentences are not', () => {
  const source = [
    '/** Client IP address; `mended` is a name. */',
    '// The user who signs in keeps the session, and what if it ends?',
    "const nobody = 'x'",
  ].join('\n')
  expect(brokenRules('a.ts', source)).toEqual([])
})

test('Markdown is read without its code', () => {
  const page = '# Nobody\n\nA page.\n\n```sh\nwhoever\n```\n\n| cell | somebody |\n'
  expect(brokenRules('a.md', page)).toEqual(['a.md:9: "somebody": name the user, caller, worker …'])
})
