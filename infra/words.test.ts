import { expect, test } from 'vitest'
import { brokenRules } from './words.ts'

test.each([
  ['a subject that is no thing', '// Whoever asks too often waits.', 'Whoever'],
  ['a comment that begins with a preposition', '/** Of who asks. */', 'begins with'],
  ['a word that the glossary replaces', '/** Number of misses before a wait. */', 'misses'],
  ['a clause instead of a noun', '// Keeps nothing of what is over.', 'of what'],
  ['an error text', "throw new Error('nobody has this address')", 'nobody'],
  ['a subject after a verb', '/** Columns that decide who sees it. */', 'decide who'],
  ['a sentence of 26 words', `// ${'word '.repeat(25)}end.`, 'sentence of 26 words'],
  ['a sentence across a semicolon', `// ${'word '.repeat(14)}end; ${'word '.repeat(12)}end.`, 'sentence of 28 words'],
  ['a sentence across a colon', `// ${'word '.repeat(14)}end: ${'word '.repeat(12)}end.`, 'sentence of 28 words'],
])('%s is reported', (_rule, source, found) => {
  expect(brokenRules('a.ts', `${source}\n`).join('\n')).toContain(found)
})

test('code, quoted names and plain sentences are not', () => {
  const source = [
    '/** Client IP address; `mended` is a name. */',
    '// The user who signs in keeps the session, and what if it ends?',
    "const nobody = 'x'",
    `// ${'word '.repeat(24)}end. **${'word '.repeat(20)}end.** ${'word '.repeat(24)}end.`,
  ].join('\n')
  expect(brokenRules('a.ts', source)).toEqual([])
})

test('Markdown is read without its code', () => {
  const page = '# Nobody\n\nA page.\n\n```sh\nwhoever\n```\n\n| cell | somebody |\n'
  expect(brokenRules('a.md', page)).toEqual(['a.md:9: "somebody": name the user, caller, worker …'])
})

test.each([
  ['css', '/* Whoever scrolls. */'],
  ['js', '// Whoever scrolls.'],
  ['mjs', '// Whoever scrolls.'],
  ['sql', '-- Whoever scrolls.'],
  ['yml', '# Whoever scrolls.'],
  ['yaml', '  ## Whoever scrolls.'],
  ['sh', '# Whoever scrolls.'],
])('comments of .%s are read', (ending, source) => {
  expect(brokenRules(`a.${ending}`, `${source}\n`)).toEqual([
    `a.${ending}:1: "Whoever": name the user, caller, worker …`,
  ])
})

test('items of a list and cells of a table are sentences of their own', () => {
  const words = 'word '.repeat(20)
  const list = `/**\n * ${words}\n * - ${words}\n * - ${words}\n */`
  expect(brokenRules('a.ts', list)).toEqual([])
  expect(brokenRules('a.md', `${words}\n\n- ${words}\n- ${words}\n\n| ${words} | ${words} |\n`)).toEqual([])
})
