// Languages of the pages for owners and administrators. Texts stand beside this file, by page.
import { pickLocale } from '@services/common/pages/locale'
import type { FastifyRequest } from 'fastify'

export const LANGUAGES = ['en', 'de'] as const
export type Language = (typeof LANGUAGES)[number]

/** Texts of a page in all languages. */
export type Words<Page> = Readonly<Record<Language, Page>>

/** Picks the language that the browser prefers, else English. */
export const languageOf = ({ headers }: Pick<FastifyRequest, 'headers'>): Language =>
  pickLocale({ locales: LANGUAGES, defaultLocale: 'en' }, { acceptLanguage: headers['accept-language'] }) as Language
