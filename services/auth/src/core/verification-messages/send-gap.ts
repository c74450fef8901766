import { regardlessOfDeadline } from '@services/common/request-deadline'
import type { Kysely, Transaction } from 'kysely'
import { mailboxOf } from '../../adapters/mail/email-address.ts'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countLimitHit } from '../../metrics.ts'
import type { Pkce } from '../one-time-tokens/pkce.ts'
import type { Address } from '../users/address.ts'
import { isTestAddress, type TestDeps } from './message-budget.ts'
import { releaseSendGap, type SendGap, takeSendGap } from './send-gaps.store.ts'

/**
 * Kinds of messages with a gap of their own. Sign-in and recovery mails share one, because they share a token. `resend`
 * has its own, so that a stranger's request cannot block the owner's change. It is short on purpose: an early resend is
 * silently dropped, and the change's own gap does the limiting.
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
  /** Address of the message, or id of the user who requests it. */
  key: string
}

export interface Requester {
  pkce?: Pkce | undefined
  /** Network of the client, see http/limits/client.ts; without a trusted header that of its proxy. */
  network: string
  /** The same; undefined without a trusted header. */
  trustedNetwork: string | undefined
}

/**
 * Returns the key of an address's gaps. A link with a code challenge serves only its requester, so each network has
 * gaps of its own. A stranger's request must not delay the owner's. All mails to a mailbox are counted apart
 * (message-budget.ts). A fixed code serves every requester.
 */
export const gapKeyOf = (
  deps: TestDeps,
  address: Address,
  { pkce, network }: Omit<Requester, 'trustedNetwork'>,
): string =>
  address.channel === 'email' && pkce && !isTestAddress(deps, address) ? `${address.value} ${network}` : address.value

/**
 * Takes the gaps and runs `work`, which sends the message. Throws while a gap lasts, whether or not an account has the
 * address. One of several parallel requests does the work and uses the budget; failed work gives the gaps back.
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
      // Noted before the statement, which may take effect even when it is cut off.
      taken.push(gap)
      const waitSeconds = await takeSendGap(deps.db, gap)
      if (waitSeconds === 0) continue
      taken.pop()
      throw tooSoon(kind, key, waitSeconds)
    }
    return await work()
  } catch (error) {
    // Gaps that cannot be given back expire by themselves.
    for (const gap of taken) await regardlessOfDeadline(() => releaseSendGap(deps.db, gap)).catch(() => {})
    throw error
  }
}

/**
 * Takes the slot of a mailbox over its cap, whatever label the address has, when a mail is about to leave. False while
 * the last one is too recent. The request does not take it: a stranger could block the owner's mail with labels that no
 * account has. `isReal` is false for the same work without a mail.
 */
export const takeMailboxSlot = async (
  deps: SendGapDeps,
  trx: Transaction<DB>,
  address: string,
  isReal: boolean,
): Promise<boolean> =>
  (await takeSendGap(trx, gapOf(deps, 'over_cap_mail', `${isReal ? '' : 'nobody '}${mailboxOf(address)}`))) === 0

const gapOf = ({ config, now }: SendGapDeps, kind: GapKind, key: string): SendGap => {
  return { kind, address: key, gapSeconds: gapSeconds(config, kind, key), now: now() }
}

function gapSeconds({ mail, mfa, sms }: SendGapDeps['config'], kind: GapKind, key: string): number {
  if (kind === 'second_factor') return mfa.phone.minGapSeconds
  if (kind === 'over_cap' && channelOf(kind, key) === 'sms') return OVER_CAP_SMS_GAP_SECONDS
  if (kind === 'over_cap') return Math.max(OVER_CAP_GAP_SECONDS, mail.signInLinkGapSeconds)
  if (kind === 'over_cap_mail') return OVER_CAP_MAIL_GAP_SECONDS
  if (channelOf(kind, key) === 'sms') return sms.minGapSeconds
  return SHORT_GAPS.includes(kind) ? mail.signInLinkGapSeconds : mail.minGapSeconds
}

/** Gap between mails to a mailbox over its cap. It bounds a flood; a longer one would delay the owner as well. */
const OVER_CAP_GAP_SECONDS = 60

/**
 * Gap between SMS to a number over its cap, or in a block over its cap. Each costs money, so strangers may cause few.
 */
const OVER_CAP_SMS_GAP_SECONDS = 3_600

/**
 * Gap by mailbox when a mail leaves; shorter, because the worker of one request may overtake that of the one before.
 */
const OVER_CAP_MAIL_GAP_SECONDS = 50

const SHORT_GAPS: readonly GapKind[] = ['sign_in_link', 'reauthentication', 'resend']

function channelOf(kind: GapKind, key: string): 'mail' | 'sms' {
  if (kind === 'sms' || kind === 'phone_change' || kind === 'second_factor') return 'sms'
  if (kind === 'reauthentication' || kind === 'resend' || kind === 'over_cap') return key.includes('@') ? 'mail' : 'sms'
  return 'mail'
}

function tooSoon(kind: GapKind, key: string, waitSeconds: number) {
  countLimitHit(`gap-${kind}`)
  return apiError(channelOf(kind, key) === 'sms' ? 'over_sms_send_rate_limit' : 'over_email_send_rate_limit', {
    retryAfterSeconds: waitSeconds,
    message: `For security purposes, you can only request this after ${waitSeconds} seconds.`,
  })
}
