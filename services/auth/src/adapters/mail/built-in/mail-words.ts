import type { LinkType, MailKind } from '../kinds.ts'

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

/** The words of the page between a link and its effect; plain text, in which `{site}` is the host of the site. */
export interface PageWords {
  heading: string
  text: string
  button: string
}

export interface Words {
  mails: Record<MailKind, MailWords>
  /** Of the confirmation page, by what the link does; `email` may do any of it. */
  pages: Record<LinkType | 'email', PageWords>
  /** Page before an account at a provider is linked; `{provider}` is its name, `{account}` one of the two below. */
  linking: PageWords & { account: string; guest: string }
  /** Before the link that is shown as text too. */
  linkHint: string
}
