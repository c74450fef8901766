import { ENGLISH } from '../../adapters/mail/built-in/words.en.ts'
import { WORDS } from '../../adapters/mail/built-in/words.ts'
import { buttonPage } from '../../http/button-page.ts'

export interface ConfirmationPage {
  /** Where the form posts to: the link's own address, relative. */
  action: string
  /** `type` of the link. */
  type: string
  /** Of the mails; a language without words of its own gets English. */
  locale: string
  siteUrl: string
}

/**
 * The page between a mail link and its effect (AUTH_MAILER_LINK_CONFIRMATION_PAGE): scanners open links but press no
 * buttons. It says what the button does, which posts to the same address, with scripts or without.
 */
export function confirmationPage({ action, type, locale, siteUrl }: ConfirmationPage): string {
  const language = Object.hasOwn(WORDS, locale) ? locale : 'en'
  const { pages } = WORDS[language] ?? ENGLISH
  const { heading, text, button } = Object.hasOwn(pages, type) ? pages[type as keyof typeof pages] : pages.email
  const site = new URL(siteUrl).host || siteUrl
  return buttonPage({ language, heading, text: text.replace('{site}', () => site), button, action })
}
