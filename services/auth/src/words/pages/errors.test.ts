import { expect, test } from 'vitest'
import { errorCatalogue } from '../../errors.ts'
import { explain, OWN_TEXT } from './errors.ts'

test('every refusal has its words in each language, but those that never reach a page and a hook’s own', () => {
  for (const code of Object.keys(errorCatalogue)) {
    const [english, german] = (['en', 'de'] as const).map((language) => explain(language, { code, message: '' }))
    if (OWN_TEXT.some((own) => own === code)) expect([code, english, german]).toEqual([code, '', ''])
    else {
      expect([code, english, german]).toEqual([code, expect.stringMatching(/\.$/), expect.stringMatching(/\.$/)])
      expect([code, english]).not.toEqual([code, german])
    }
  }
})

test('a code that a stranger wrote shows the given sentence', () => {
  for (const code of ['constructor', '__proto__', 'toString', '']) {
    expect(explain('en', { code, message: 'That did not work.' })).toBe('That did not work.')
  }
})
