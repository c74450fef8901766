import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../config.ts'
import type { DB } from '../db/tables.ts'
import { apiError } from '../errors.ts'
import { gapLeft, takeSendGap } from './send-gaps.store.ts'

/**
 * What is spaced apart; sign-in and recovery mails share one, as they share a token. `resend` is what a stranger may ask
 * about an address: it must not keep its owner from asking for a change.
 */
export type GapKind =
  | 'confirmation'
  | 'sign_in_link'
  | 'email_change'
  | 'reauthentication'
  | 'sms'
  | 'phone_change'
  | 'resend'

export interface SendGapDeps {
  db: Kysely<DB>
  now: () => Date
  config: Pick<Config, 'mail' | 'sms'>
}

/** Throws while the last message of this kind to the address is too recent, whoever has the address. Takes nothing. */
export async function refuseWithinGap(deps: SendGapDeps, kind: GapKind, key: string): Promise<void> {
  refuse(channelOf(kind, key), await gapLeft(deps.db, gapOf(deps, kind, key)))
}

/** The same, and the message sent in this transaction becomes the last one. */
export async function takeGap(deps: SendGapDeps, trx: Transaction<DB>, kind: GapKind, key: string): Promise<void> {
  refuse(channelOf(kind, key), await takeSendGap(trx, gapOf(deps, kind, key)))
}

/** `key`: the address a message goes to, or the id of the user who asks for it. */
const gapOf = ({ config, now }: SendGapDeps, kind: GapKind, key: string) => ({
  kind,
  address: key,
  gapSeconds: gapSeconds(config, kind, key),
  now: now(),
})

function gapSeconds({ mail, sms }: SendGapDeps['config'], kind: GapKind, key: string): number {
  if (channelOf(kind, key) === 'sms') return sms.minGapSeconds
  return kind === 'sign_in_link' || kind === 'reauthentication' ? mail.signInLinkGapSeconds : mail.minGapSeconds
}

function channelOf(kind: GapKind, key: string): 'mail' | 'sms' {
  if (kind === 'sms' || kind === 'phone_change') return 'sms'
  if (kind === 'reauthentication' || kind === 'resend') return key.includes('@') ? 'mail' : 'sms'
  return 'mail'
}

function refuse(channel: 'mail' | 'sms', waitSeconds: number): void {
  if (waitSeconds === 0) return
  throw apiError(channel === 'sms' ? 'over_sms_send_rate_limit' : 'over_email_send_rate_limit', {
    retryAfterSeconds: waitSeconds,
    message: `For security purposes, you can only request this after ${waitSeconds} seconds.`,
  })
}
