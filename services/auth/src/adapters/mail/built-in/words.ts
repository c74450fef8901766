import type { Words } from './mail-words.ts'
import { GERMAN } from './words.de.ts'
import { ENGLISH } from './words.en.ts'

/** The languages that ship; another one is a file like these and a line here. */
export const WORDS: Record<string, Words> = { en: ENGLISH, de: GERMAN }
