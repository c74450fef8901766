import { pickLocale } from '@services/common/pages/locale'
import type { Transaction } from 'kysely'
import { actionLink } from '../../adapters/mail/action-link.ts'
import type { LinkType, PasswordState } from '../../adapters/mail/kinds.ts'
import { testCodeOf } from '../../adapters/test-codes.ts'
import { ARRIVAL_PATH, CONFIRM_PATH } from '../../config/pages/page-paths.ts'
import type { Config } from '../../config.ts'
import type { DB, TokenPurpose } from '../../db/tables.ts'
import { type IssueTokenDeps, issueToken, type OneTimeToken } from '../one-time-tokens/one-time-token.ts'
import type { Pkce } from '../one-time-tokens/pkce.ts'
import { type NewMail, type OutboxDeps, queueMessage } from '../outbox/outbox.ts'
import type { User } from '../users/users.store.ts'
import { LONG_CODE_DIGITS, type Sending } from './code-message.ts'

/** Mails with a link: its type at /verify, the purpose of its token and the name of its path setting. */
export const LINK_KINDS = {
  confirmation: { type: 'signup', purpose: 'confirmation', path: 'confirmation' },
  invite: { type: 'invite', purpose: 'confirmation', path: 'invite' },
  recovery: { type: 'recovery', purpose: 'recovery', path: 'recovery' },
  magic_link: { type: 'magiclink', purpose: 'recovery', path: 'recovery' },
  email_change: { type: 'email_change', purpose: 'email_change_new', path: 'email_change' },
} as const satisfies Record<string, { type: LinkType; purpose: TokenPurpose; path: keyof Config['mail']['linkPaths'] }>

/** Account at a provider that awaits the proof of its address (../identities/unproven-account.ts). */
export interface AccountToLink {
  provider: string
  /** Stored sealed; undefined: no browser can link it. */
  account: object | undefined
}

export type LinkKind = keyof typeof LINK_KINDS

export interface MailContext {
  redirectTo: string
  /** Base of the link: API_EXTERNAL_URL, or the allowed host of the request. */
  externalUrl: string
  acceptLanguage: string | undefined
}

interface LinkMail extends MailContext, Sending {
  kind: LinkKind
  to: string
  user: User
  /** Only for email_change, where two addresses get a mail. */
  purpose?: TokenPurpose
  /** Only for email_change: the user's next address. */
  newEmail?: string
  pkce?: Pkce | undefined
  /** Code too long to be guessed, however many mails there are. */
  hasLongCode?: boolean | undefined
  /** Only for confirmation. */
  password?: PasswordState
  /** Only for confirmation: the account at a provider that the mail is about. */
  external?: AccountToLink | undefined
}

export interface LinkMailDeps extends IssueTokenDeps, OutboxDeps {
  config: Pick<Config, 'mail' | 'siteUrl'>
}

/**
 * Issues the link and code of a mail and writes the mail into the outbox, in the caller's transaction. A test address's
 * code is fixed and not sent.
 */
export async function sendLinkMail(deps: LinkMailDeps, trx: Transaction<DB>, mail: LinkMail): Promise<void> {
  const message = await issueLinkMail(deps, trx, mail)
  if (message) await queueMessage(deps, trx, message)
}

type LinkMessage = NewMail<LinkKind | 'account_exists'>

/** The same without writing it into the outbox; undefined for a test address. */
export async function issueLinkMail(
  deps: LinkMailDeps,
  trx: Transaction<DB>,
  mail: LinkMail,
): Promise<LinkMessage | undefined> {
  const { config } = deps
  const { kind, user, to, acceptLanguage, externalUrl, messageId, delivery = 'real' } = mail
  const isPretended = delivery !== 'real'
  const lifetimeSeconds = isPretended ? 0 : linkLifetime(config, kind)
  const userId = delivery === 'decoy' ? null : user.id
  const testCode = testCodeOf(config.mail.testAddresses, to, deps.now())
  const token = await issueToken(deps, trx, {
    userId,
    purpose: mail.purpose ?? LINK_KINDS[kind].purpose,
    relatesTo: to,
    codeLength: config.mail.codeLength + (mail.hasLongCode ? LONG_CODE_DIGITS : 0),
    lifetimeSeconds,
    pkce: mail.pkce,
    isClaim: mail.isClaim,
    sessionId: mail.sessionId,
    isRepeat: mail.isRepeat,
    isPretended,
    externalAccount: mail.external?.account,
    code: testCode,
  })
  if (testCode) return undefined
  const variables = {
    SiteURL: config.siteUrl,
    Email: user.email ?? to,
    ConfirmationURL: confirmationUrl(config, kind, token, mail),
    Token: token.code,
    TokenHash: token.linkToken,
    RedirectTo: mail.redirectTo,
    Data: user.user_metadata,
  }
  const locale = pickLocale(config.mail, { metadata: user.user_metadata, acceptLanguage })
  const { codeHash, repeatsCode } = token
  const sealed = { to, codeHash, repeatsCode, locale, externalUrl }
  const message = { channel: 'mail', userId, lifetimeSeconds, messageId, ...sealed } as const
  if (delivery === 'notice') {
    const { SiteURL, Email, Data } = variables
    return { ...message, kind: 'account_exists', variables: { SiteURL, Email, Data }, lifetimeSeconds: null }
  }
  if (kind === 'email_change') {
    return { ...message, kind, variables: { ...variables, NewEmail: mail.newEmail ?? to, SendingTo: to } }
  }
  if (kind === 'confirmation') {
    const more = { Password: mail.password ?? '', Provider: mail.external?.account ? mail.external.provider : '' }
    return { ...message, kind, variables: { ...variables, ...more } }
  }
  return { ...message, kind, variables }
}

/** Makes the link of a mail, or for admins, who send it themselves (POST /admin/generate_link). */
export const confirmationUrl = (
  config: Pick<Config, 'mail'>,
  kind: LinkKind,
  { linkToken }: OneTimeToken,
  { externalUrl, redirectTo }: MailContext,
): string => {
  const { type, path } = LINK_KINDS[kind]
  const { pages, [path]: usual } = config.mail.linkPaths
  const leadsToPages = pages !== undefined && redirectTo.startsWith(`${externalUrl}/ui/`)
  return actionLink(externalUrl, leadsToPages ? pages : usual, { token: linkToken, type, redirectTo })
}

/** Makes the link of a recovery that leads to the hosted pages alone. */
export const recoveryPageUrl = (externalUrl: string, { linkToken: token }: Pick<OneTimeToken, 'linkToken'>): string =>
  actionLink(externalUrl, CONFIRM_PATH, { token, type: 'recovery', redirectTo: externalUrl + ARRIVAL_PATH })

export const linkLifetime = ({ mail }: Pick<Config, 'mail'>, kind: LinkKind): number =>
  kind === 'invite' ? mail.inviteLifetimeSeconds : mail.codeLifetimeSeconds
