import { pickLocale } from '@services/common/pages/locale'
import { WORDS } from '../../adapters/mail/built-in/words.ts'
import type { Config } from '../../config.ts'
import type { Metadata } from '../../db/tables.ts'
import type { Language } from '../../words/language.ts'

/** Picks the reader's language: of the account, else of the browser, else the first of PAGES_LANGUAGES. */
export function pageLanguage(
  { pages: { languages } }: Pick<Config, 'pages'>,
  reader: { metadata?: Metadata; acceptLanguage?: string | undefined },
): Language {
  const [defaultLocale = 'en'] = languages
  return pickLocale({ locales: languages, defaultLocale }, reader) as Language
}

/** Returns the texts of button pages in the reader's language, and the name of the site. */
export function pageWords(config: Pick<Config, 'pages' | 'siteUrl'>, acceptLanguage: string | undefined) {
  const language = pageLanguage(config, { acceptLanguage })
  return { language, words: WORDS[language], site: new URL(config.siteUrl).host || config.siteUrl }
}
