import { ENGLISH } from '../../adapters/mail/built-in/words.en.ts'
import { WORDS } from '../../adapters/mail/built-in/words.ts'
import { pickLocale } from '../../adapters/mail/locale.ts'
import type { Config } from '../../config.ts'

/** Returns the texts of pages in the reader's language, or else in English, and the name of the site. */
export function pageWords({ mail, siteUrl }: Pick<Config, 'mail' | 'siteUrl'>, acceptLanguage: string | undefined) {
  const locale = pickLocale(mail, { acceptLanguage })
  const language = Object.hasOwn(WORDS, locale) ? locale : 'en'
  return { language, words: WORDS[language] ?? ENGLISH, site: new URL(siteUrl).host || siteUrl }
}
