import type { Language } from '../../../words/language.ts'
import type { Words } from './mail-words.ts'
import { GERMAN } from './words.de.ts'
import { ENGLISH } from './words.en.ts'

/** Languages that ship; a further one is a file like these, an entry here and one in words/language.ts. */
export const WORDS: Record<string, Words> & Record<Language, Words> = { en: ENGLISH, de: GERMAN }
