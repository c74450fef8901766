import { expect, test } from 'vitest'
import { pickLocale } from './locale.ts'

const settings = { locales: ['en', 'de', 'pt-br'], defaultLocale: 'en' }

test.each([
  [{}, 'en'],
  [{ metadata: { locale: 'de' } }, 'de'],
  [{ metadata: { locale: 'de-DE' } }, 'de'],
  [{ metadata: { locale: 'de_AT' } }, 'de'],
  [{ metadata: { locale: 'PT-BR' } }, 'pt-br'],
  [{ metadata: { locale: 'pt-PT' } }, 'en'],
  [{ metadata: { locale: 'fr' }, acceptLanguage: 'de' }, 'de'],
  [{ metadata: { locale: 'de' }, acceptLanguage: 'en' }, 'de'],
  [{ metadata: { locale: 7 } }, 'en'],
  [{ metadata: { locale: '../de' } }, 'en'],
  [{ metadata: { locale: 'de'.repeat(100_000) } }, 'en'],
  [{ acceptLanguage: 'de;q=0.3, en;q=0.5' }, 'en'],
  [{ acceptLanguage: 'fr, de;q=0.5, en;q=0.1' }, 'de'],
  [{ acceptLanguage: 'de;q=0, *' }, 'en'],
  [{ acceptLanguage: 'zh-Hant-TW,de-x;q=abc' }, 'en'],
  [{ acceptLanguage: ',;,;;q=1,'.repeat(10_000) }, 'en'],
])('%j is %s', (from, locale) => {
  expect(pickLocale(settings, from)).toBe(locale)
})
