// Limits of mails: to one address (AUTH_MAILER_MAX_PER_ADDRESS), by an owner, and of all users together
// (AUTH_RATE_LIMIT_EMAIL_SENT). Calls: ../verification-messages/message-budget.ts; SMS: sms-guards.ts.
import { ApiError } from '@services/common/errors'
import { mailboxOf } from '../../adapters/mail/email-address.ts'
import type { Config } from '../../config.ts'
import { consume, countAll, keyOf, type LimiterDeps, openLimiter, type Refund } from './limiter.ts'
import { countGuarded, type Guard, type MailShare, openBudget, ownerKey } from './message-guards.ts'

const OVER = 'over_email_send_rate_limit'

export function createMailGuards(deps: LimiterDeps, { limits, mail }: Pick<Config, 'limits' | 'mail'>) {
  const guardsOf = (name: string, keyFor: Guard['keyFor']): Guard[] =>
    mail.maxPerAddress.map((rate) => {
      const id = { name: `${name}-${rate.seconds}`, setting: 'AUTH_MAILER_MAX_PER_ADDRESS' } as const
      return { limiter: openLimiter(deps, id, rate), keyFor }
    })
  const perMailbox = guardsOf('mail-address', (address) => keyOf(mailboxOf(address)))
  const perOwner = guardsOf('mail-user', (owner) => owner)
  const ofAll = (name: string) => ({ name, setting: 'AUTH_RATE_LIMIT_EMAIL_SENT' }) as const
  const changesResent = openLimiter(deps, ofAll('resend-changes'), limits.changesResent)
  const budget = limits.mailsSent && openBudget(deps, ofAll('mails'), limits.mailsSent, OVER)
  const inBudget = async (to: string, share: MailShare) => budget?.(share, keyOf(mailboxOf(to))) ?? (async () => {})
  const inShare = async (to: string, share: MailShare): Promise<Refund> => {
    if (share === 'admins') return async () => {}
    return share === 'strangers' ? countGuarded(perMailbox, to, OVER) : countGuarded(perOwner, ownerKey(share), OVER)
  }
  return {
    /** Counts a mail towards the mailbox's quota and the global budget, whether or not an account exists. */
    mailSent: (to: string, share: MailShare) => countAll([() => inShare(to, share), () => inBudget(to, share)]),
    /** The same for a sign-in or recovery mail, which a full mailbox does not refuse. */
    async signInMailSent(to: string, share: MailShare) {
      let isOverCap = false
      const refund = await countAll([
        () =>
          inShare(to, share).catch((error: unknown) => {
            if (!(error instanceof ApiError)) throw error
            isOverCap = true
            return async () => {}
          }),
        () => inBudget(to, share),
      ])
      return { isOverCap, refund }
    },
    /** Counts a stranger's request to resend a change of address: each is a row until a worker answers it. */
    changeResent: () => consume(changesResent, 'all', 'over_request_rate_limit'),
  }
}
