import { regardlessOfDeadline } from '@services/common/deadline'
import type { Kysely, Transaction } from 'kysely'
import { mailboxOf } from '../../adapters/mail/email-address.ts'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countLimitHit } from '../../metrics.ts'
import type { Pkce } from '../one-time-tokens/pkce.ts'
import type { Address } from '../users/address.ts'
import { giveBackSendGap, type SendGap, takeSendGap } from './send-gaps.store.ts'

/**
 * What is spaced apart; sign-in and recovery mails share one, as they share a token. `resend` is what a stranger may ask
 * about an address: it must not keep its owner from asking for a change. It is short, because what is asked for too soon
 * after that change is not sent, and the caller must not be told; the change's own gap is the real one.
 */
export type GapKind =
  | 'confirmation'
  | 'sign_in_link'
  | 'over_cap'
  | 'over_cap_mail'
  | 'email_change'
  | 'reauthentication'
  | 'sms'
  | 'phone_change'
  | 'resend'
  | 'second_factor'

export interface SendGapDeps {
  db: Kysely<DB>
  now: () => Date
  config: Pick<Config, 'mail' | 'mfa' | 'sms'>
}

export interface Gap {
  kind: GapKind
  /** The address a message goes to, or the id of the user who asks for it. */
  key: string
}

/** What of a request decides whom it may keep waiting. */
export interface Asker {
  pkce?: Pkce | undefined
  /** Network of the client, see http/client.ts. */
  network: string
}

/**
 * Key of the gaps of an address. A link with a code challenge serves its asker alone, so each network has gaps of its own: a
 * stranger's request must not hold back the owner's. How much a mailbox gets in all is counted apart (message-budget.ts).
 */
export const gapKeyOf = ({ channel, value }: Address, { pkce, network }: Asker): string =>
  channel === 'email' && pkce ? `${value} ${network}` : value

/**
 * Runs `work` for a message that becomes the last one of these gaps. Throws while one of the last ones is too recent,
 * whoever has the address. The gaps are taken first, each in one statement, so that of any number of requests at once one
 * does the work and spends of what may be sent; work that fails gives them back, and its refusal keeps nobody waiting.
 */
export async function withinGaps<Result>(
  deps: SendGapDeps,
  gaps: readonly Gap[],
  work: () => Promise<Result>,
): Promise<Result> {
  const taken: SendGap[] = []
  try {
    for (const { kind, key } of gaps) {
      const gap = gapOf(deps, kind, key)
      // Before: a statement that is cut off may have been done all the same.
      taken.push(gap)
      const waitSeconds = await takeSendGap(deps.db, gap)
      if (waitSeconds === 0) continue
      taken.pop()
      throw tooSoon(kind, key, waitSeconds)
    }
    return await work()
  } catch (error) {
    // A database that is away keeps them; they expire by themselves.
    for (const gap of taken) await regardlessOfDeadline(() => giveBackSendGap(deps.db, gap)).catch(() => {})
    throw error
  }
}

/**
 * Takes the turn of a mailbox that has had its share, whatever label the address has, where a mail is about to leave; false while
 * the last one is too recent. Not at the request: a stranger could name labels that nobody has, and keep the owner's mail from
 * leaving without one of their own. `isReal`: false for the same work without a mail.
 */
export const takeMailboxTurn = async (
  deps: SendGapDeps,
  trx: Transaction<DB>,
  address: string,
  isReal: boolean,
): Promise<boolean> =>
  (await takeSendGap(trx, gapOf(deps, 'over_cap_mail', `${isReal ? '' : 'nobody '}${mailboxOf(address)}`))) === 0

const gapOf = ({ config, now }: SendGapDeps, kind: GapKind, key: string) => ({
  kind,
  address: key,
  gapSeconds: gapSeconds(config, kind, key),
  now: now(),
})

function gapSeconds({ mail, mfa, sms }: SendGapDeps['config'], kind: GapKind, key: string): number {
  if (kind === 'second_factor') return mfa.phone.minGapSeconds
  if (kind === 'over_cap') return Math.max(OVER_CAP_GAP_SECONDS, mail.signInLinkGapSeconds)
  if (kind === 'over_cap_mail') return OVER_CAP_MAIL_GAP_SECONDS
  if (channelOf(kind, key) === 'sms') return sms.minGapSeconds
  return SHORT_GAPS.includes(kind) ? mail.signInLinkGapSeconds : mail.minGapSeconds
}

/** Between mails to a mailbox that has had its share: what bounds a flood. Longer would keep its owner waiting as long. */
const OVER_CAP_GAP_SECONDS = 60

/** Kept by the mailbox that a mail leaves for; shorter, because the worker of one request may be faster than that of the one before. */
const OVER_CAP_MAIL_GAP_SECONDS = 50

const SHORT_GAPS: readonly GapKind[] = ['sign_in_link', 'reauthentication', 'resend']

function channelOf(kind: GapKind, key: string): 'mail' | 'sms' {
  if (kind === 'sms' || kind === 'phone_change' || kind === 'second_factor') return 'sms'
  if (kind === 'reauthentication' || kind === 'resend') return key.includes('@') ? 'mail' : 'sms'
  return 'mail'
}

function tooSoon(kind: GapKind, key: string, waitSeconds: number) {
  countLimitHit(`gap-${kind}`)
  return apiError(channelOf(kind, key) === 'sms' ? 'over_sms_send_rate_limit' : 'over_email_send_rate_limit', {
    retryAfterSeconds: waitSeconds,
    message: `For security purposes, you can only request this after ${waitSeconds} seconds.`,
  })
}
