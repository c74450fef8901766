import type { LinkType, MailKind } from '../kinds.ts'

/** Words of one built-in mail; each is a template with the variables of its kind. */
export interface MailWords {
  subject: string
  heading: string
  text: string
  button?: string
  /** Label of the code, without a colon. */
  code?: string
  footer: string
}

/** Plain text of the page between a link and its effect; `{site}` is the host of the site. */
export interface PageWords {
  heading: string
  text: string
  button: string
}

export interface Words {
  mails: Record<MailKind, MailWords>
  /** Confirmation page by link type; an `email` link may have any effect. */
  pages: Record<LinkType | 'email', PageWords>
  /** Page shown before linking; `{provider}` is the provider's name, `{account}` either `account` or `guest`. */
  linking: PageWords & { account: string; guest: string }
  /** Page after a provider was tested. */
  providerTested: Pick<PageWords, 'heading' | 'text'>
  /** Introduces the link that is repeated as text. */
  linkHint: string
}
