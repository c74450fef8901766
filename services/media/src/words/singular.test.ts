// Texts of scripts about one thing and about several.
import { expect, test, vi } from 'vitest'
import { homeScriptWords } from './home-script.ts'
import { libraryScriptWords } from './library-scripts.ts'

const PAGE_DATA = new URL('../flows/pages/assets/owner/page-data.js', import.meta.url).href

/** Keys that pages never ask for with one: `deleteOne` and `oneChosen` have sites of their own. */
const ALWAYS_MANY = ['chosen', 'deleteTitle', 'allChosen', 'tooMany', 'someFailed', 'sendMany', 'secondsLong']

test.for(['en', 'de'] as const)('each text of scripts that counts has a singular (%s)', async (language) => {
  const words: Record<string, string> = { ...libraryScriptWords[language], ...homeScriptWords[language] }
  const counting = Object.keys(words).filter((key) => words[key]?.includes('{count}') && !ALWAYS_MANY.includes(key))
  expect(counting).toContain('done')
  vi.stubGlobal('document', { getElementById: () => ({ textContent: JSON.stringify({ words }) }) })
  vi.resetModules()
  const { text } = await import(PAGE_DATA)
  for (const key of counting) {
    expect.soft(text(key, { count: 1 }), key).not.toMatch(/\d (clips|Clips|were|are|wurden|sind)\b/)
    expect.soft(text(key, { count: 1 }), key).not.toBe(text(key, { count: 2 }).replace('2', '1'))
    expect.soft(text(key, { count: 2 }), key).toContain('2')
  }
})
