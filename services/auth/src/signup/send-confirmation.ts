import type { Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { actionLink } from '../mail/action-link.ts'
import { queueMail } from '../mail/outbox.ts'
import { takeSendGap } from '../mail/send-gaps.store.ts'
import { hashCode, hashLinkToken, makeOneTimeToken } from '../one-time-tokens/one-time-token.ts'
import { putOneTimeToken } from '../one-time-tokens/one-time-tokens.store.ts'
import { setConfirmationSent, type User } from '../users/users.store.ts'

/**
 * Sends the confirmation mail to `recipient`; without one it only takes the right to send, so that an address with a
 * confirmed account is answered as any other. Throws over_email_send_rate_limit within the gap.
 */
export async function sendConfirmation(
  deps: Deps,
  trx: Transaction<DB>,
  { email, recipient, redirectTo }: { email: string; recipient: User | undefined; redirectTo: string },
): Promise<void> {
  const { config } = deps
  const now = deps.now()
  const gap = { kind: 'confirmation', address: email, gapSeconds: config.mail.minGapSeconds, now }
  const { waitSeconds } = await takeSendGap(trx, gap)
  if (waitSeconds > 0) {
    const message = `For security purposes, you can only request this after ${waitSeconds} seconds.`
    throw apiError('over_email_send_rate_limit', { retryAfterSeconds: waitSeconds, message })
  }
  if (!recipient) return

  const { linkToken, code } = makeOneTimeToken(deps.random, config.mail.codeLength)
  const expiresAt = new Date(now.getTime() + config.mail.codeLifetimeSeconds * 1000)
  await putOneTimeToken(trx, {
    userId: recipient.id,
    purpose: 'confirmation',
    relatesTo: email,
    tokenHash: hashLinkToken(linkToken),
    codeHash: hashCode(deps.codeKey, 'confirmation', email, code),
    expiresAt,
    now,
  })
  await setConfirmationSent(trx, recipient.id, now)
  const link = { token: linkToken, type: 'signup', redirectTo }
  const variables = {
    SiteURL: config.siteUrl,
    Email: email,
    ConfirmationURL: actionLink(config.server.externalUrl, config.mail.linkPaths.confirmation, link),
    Token: code,
    TokenHash: linkToken,
    RedirectTo: redirectTo,
    Data: recipient.user_metadata,
  }
  await queueMail(deps, trx, { kind: 'confirmation', userId: recipient.id, to: email, variables, expiresAt })
}
