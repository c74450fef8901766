// `email_data` of the send-email hook: all members are texts, empty where they mean nothing. The names and the odd
// pairs of an address change are the reference's, because the senders in the field rely on them.
import { type MailKind, NOTIFICATION_KINDS, type VariablesOf } from '../../adapters/mail/kinds.ts'

/** Mail rendered as SMTP would send it. */
export interface RenderedMail {
  to: string
  variables: VariablesOf<MailKind>
  subject: string
  text: string
  html: string
}

/** Code and link token that confirm nothing. */
export interface VoidToken {
  code: string
  linkToken: string
}

interface Question {
  kind: MailKind
  mails: readonly RenderedMail[]
  locale: string
  /** Base of links. */
  externalUrl: string
  /** Stands in for the new address of a change that it has agreed to already. */
  voidToken: () => VoidToken
}

/** Names of the reference; others are as in the outbox. */
const ACTION_TYPES: Partial<Record<MailKind, string>> = { confirmation: 'signup', magic_link: 'magiclink' }

export const actionTypeOf = (kind: MailKind): string => ACTION_TYPES[kind] ?? kind

const NO_TOKENS = { token: '', token_hash: '', token_new: '', token_hash_new: '' }
const NO_SECOND = { recipient_new: '', subject_new: '', text_new: '', html_new: '' }

export function emailData({ kind, mails, locale, externalUrl, voidToken }: Question) {
  const [first, second] = kind === 'email_change' ? inOrderOfTokens(mails) : mails
  const { to, variables, subject, text, html } = first as RenderedMail
  const more = (name: string) => String((variables as unknown as Record<string, unknown>)[name] ?? '')
  return {
    ...NO_TOKENS,
    ...(kind === 'email_change'
      ? changeTokens(mails, voidToken)
      : { token: more('Token'), token_hash: more('TokenHash') }),
    redirect_to: more('RedirectTo'),
    email_action_type: actionTypeOf(kind),
    site_url: externalUrl.replace(/\/$/, ''),
    old_email: more('OldEmail'),
    old_phone: more('OldPhone'),
    provider: more('Provider'),
    factor_type: more('FactorType'),
    remaining: more('Remaining'),
    locale,
    ...{ recipient: to, subject, text, html },
    ...NO_SECOND,
    ...(second && {
      recipient_new: second.to,
      subject_new: second.subject,
      text_new: second.text,
      html_new: second.html,
    }),
  }
}

const isToNew = ({ to, variables }: RenderedMail) => 'NewEmail' in variables && variables.NewEmail === to

/** `recipient` is the address that `token` is for: the current one where it must agree. */
const inOrderOfTokens = (mails: readonly RenderedMail[]) =>
  mails.toSorted((a, b) => Number(isToNew(a)) - Number(isToNew(b)))

/**
 * Crosses the tokens of two mails: the current address gets `token` and `token_hash_new`, the new one the others. A
 * sender may write to the new address in any case, so the current one's code is never alone. An agreed address has
 * void tokens.
 */
function changeTokens(mails: readonly RenderedMail[], voidToken: () => VoidToken): Partial<typeof NO_TOKENS> {
  const tokensOf = (mail: RenderedMail | undefined) => {
    const variables = mail?.variables
    return variables && 'TokenHash' in variables ? { code: variables.Token, linkToken: variables.TokenHash } : undefined
  }
  const ofNew = tokensOf(mails.find(isToNew))
  const ofCurrent = tokensOf(mails.find((mail) => !isToNew(mail)))
  if (!ofCurrent) return { token: ofNew?.code ?? '', token_hash: ofNew?.linkToken ?? '' }
  const { code, linkToken } = ofNew ?? voidToken()
  return { token: ofCurrent.code, token_hash: linkToken, token_new: code, token_hash_new: ofCurrent.linkToken }
}

/**
 * Address that senders take for the recipient, because the reference names no other: the user's own, as it is when the
 * mail is due. That of a claim or an unlinked account is not the stored one.
 */
export function emailOfUser(kind: MailKind, { to, variables }: Pick<RenderedMail, 'to' | 'variables'>): string {
  const isOwn = kind === 'email_change' || Object.hasOwn(NOTIFICATION_KINDS, kind)
  return isOwn ? variables.Email || to : to
}
