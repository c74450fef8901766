import type { Words } from './mail-words.ts'
import { GERMAN } from './words.de.ts'
import { ENGLISH } from './words.en.ts'

/** Languages that ship; a further one is a file like these and an entry here. */
export const WORDS: Record<string, Words> = { en: ENGLISH, de: GERMAN }
