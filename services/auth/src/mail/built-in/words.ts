import type { MailKind } from '../kinds.ts'
import { GERMAN } from './words.de.ts'
import { ENGLISH } from './words.en.ts'

/** The words of one built-in mail; all are templates, with the variables of the kind. */
export interface MailWords {
  subject: string
  heading: string
  text: string
  /** Of mails with a link. */
  button?: string
  /** Before the code, of mails with one; ends without a colon. */
  code?: string
  footer: string
}

export interface Words {
  mails: Record<MailKind, MailWords>
  /** Before the link that is shown as text too. */
  linkHint: string
}

/** The languages that ship; another one is a file like these and a line here. */
export const WORDS: Record<string, Words> = { en: ENGLISH, de: GERMAN }
