import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../config.ts'
import type { DB } from '../db/tables.ts'
import { apiError } from '../errors.ts'
import { gapLeft, takeSendGap } from './send-gaps.store.ts'

/** What is spaced apart; sign-in and recovery mails share one, as they share a token. */
export type GapKind = 'confirmation' | 'sign_in_link' | 'email_change' | 'reauthentication' | 'sms' | 'phone_change'

export interface SendGapDeps {
  db: Kysely<DB>
  now: () => Date
  config: Config
}

/** Throws while the last message of this kind to the address is too recent, whoever has the address. Takes nothing. */
export async function refuseWithinGap(deps: SendGapDeps, kind: GapKind, address: string): Promise<void> {
  refuse(address, await gapLeft(deps.db, gapOf(deps, kind, address)))
}

/** The same, and the message sent in this transaction becomes the last one. */
export async function takeGap(deps: SendGapDeps, trx: Transaction<DB>, kind: GapKind, address: string): Promise<void> {
  refuse(address, await takeSendGap(trx, gapOf(deps, kind, address)))
}

const gapOf = ({ config, now }: SendGapDeps, kind: GapKind, address: string) => ({
  kind,
  address,
  gapSeconds: gapSeconds(config, kind, address),
  now: now(),
})

function gapSeconds({ mail, sms }: Config, kind: GapKind, address: string): number {
  if (isPhone(address)) return sms.minGapSeconds
  return kind === 'confirmation' || kind === 'email_change' ? mail.minGapSeconds : mail.signInLinkGapSeconds
}

const isPhone = (address: string) => !address.includes('@')

function refuse(address: string, waitSeconds: number): void {
  if (waitSeconds === 0) return
  throw apiError(isPhone(address) ? 'over_sms_send_rate_limit' : 'over_email_send_rate_limit', {
    retryAfterSeconds: waitSeconds,
    message: `For security purposes, you can only request this after ${waitSeconds} seconds.`,
  })
}
