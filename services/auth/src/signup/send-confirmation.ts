import type { Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { actionLink } from '../mail/action-link.ts'
import { pickLocale } from '../mail/locale.ts'
import { queueMail } from '../mail/outbox.ts'
import { gapLeft, type SendGap, takeSendGap } from '../mail/send-gaps.store.ts'
import { hashCode, hashLinkToken, makeOneTimeToken } from '../one-time-tokens/one-time-token.ts'
import { putOneTimeToken } from '../one-time-tokens/one-time-tokens.store.ts'
import { setConfirmationSent, touchUser, type User } from '../users/users.store.ts'

/** Throws over_email_send_rate_limit while the last mail to the address is too recent, whoever has the address. */
export async function refuseWithinGap(deps: Deps, email: string): Promise<void> {
  refuse(await gapLeft(deps.db, gapOf(deps, email)))
}

/**
 * Sends the confirmation mail to a pending `holder`. For a confirmed one the same work is done and no mail leaves, so
 * that neither answer nor time tells which of both it was.
 */
export async function sendConfirmation(
  deps: Deps,
  trx: Transaction<DB>,
  mail: {
    email: string
    holder: User
    isPending: boolean
    redirectTo: string
    acceptLanguage: string | undefined
  },
): Promise<void> {
  const { config } = deps
  const { email, holder, isPending, redirectTo, acceptLanguage } = mail
  const now = deps.now()
  refuse(await takeSendGap(trx, gapOf(deps, email)))

  const { linkToken, code } = makeOneTimeToken(deps.random, config.mail.codeLength)
  const lifetimeSeconds = isPending ? config.mail.codeLifetimeSeconds : 0
  await putOneTimeToken(trx, {
    userId: holder.id,
    purpose: 'confirmation',
    relatesTo: email,
    tokenHash: hashLinkToken(linkToken),
    codeHash: hashCode(deps.codeKey, 'confirmation', email, code),
    expiresAt: new Date(now.getTime() + lifetimeSeconds * 1000),
    now,
  })
  if (isPending) await setConfirmationSent(trx, holder.id, now)
  else await touchUser(trx, holder.id, holder.updated_at)
  const link = { token: linkToken, type: 'signup', redirectTo }
  const variables = {
    SiteURL: config.siteUrl,
    Email: email,
    ConfirmationURL: actionLink(config.server.externalUrl, config.mail.linkPaths.confirmation, link),
    Token: code,
    TokenHash: linkToken,
    RedirectTo: redirectTo,
    Data: holder.user_metadata,
  }
  const locale = pickLocale(config.mail, { metadata: holder.user_metadata, acceptLanguage })
  await queueMail(deps, trx, { kind: 'confirmation', userId: holder.id, to: email, variables, lifetimeSeconds, locale })
}

const gapOf = (deps: Deps, address: string): SendGap => ({
  kind: 'confirmation',
  address,
  gapSeconds: deps.config.mail.minGapSeconds,
  now: deps.now(),
})

function refuse(waitSeconds: number): void {
  if (waitSeconds === 0) return
  const message = `For security purposes, you can only request this after ${waitSeconds} seconds.`
  throw apiError('over_email_send_rate_limit', { retryAfterSeconds: waitSeconds, message })
}
