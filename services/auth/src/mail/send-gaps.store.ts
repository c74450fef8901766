import { createHash } from 'node:crypto'
import type { Kysely, Transaction } from 'kysely'
import type { DB } from '../db/tables.ts'

export interface SendGap {
  /** What is spaced: mails of one kind to one address. */
  kind: string
  address: string
  gapSeconds: number
  now: Date
}

/**
 * Takes the right to send to an address now; seconds left to wait otherwise. Kept for known and unknown addresses alike,
 * or the wait would tell which accounts exist. In the caller's transaction: a rollback gives the right back.
 */
export async function takeSendGap(trx: Transaction<DB>, gap: SendGap): Promise<{ waitSeconds: number }> {
  const key = createHash('sha256').update(`${gap.kind}\0${gap.address}`).digest()
  const sentBefore = new Date(gap.now.getTime() - gap.gapSeconds * 1000)
  const values = { sent_at: gap.now, expires_at: new Date(gap.now.getTime() + gap.gapSeconds * 1000) }
  const taken = await trx
    .insertInto('send_gaps')
    .values({ key, ...values })
    .onConflict((conflict) => conflict.column('key').doUpdateSet(values).where('send_gaps.sent_at', '<=', sentBefore))
    .returning('key')
    .executeTakeFirst()
  if (taken) return { waitSeconds: 0 }
  const last = await trx.selectFrom('send_gaps').select('sent_at').where('key', '=', key).executeTakeFirstOrThrow()
  return { waitSeconds: Math.max(1, Math.ceil((last.sent_at.getTime() - sentBefore.getTime()) / 1000)) }
}

/** Housekeeping. */
export async function deleteExpiredSendGaps(db: Kysely<DB>, now: Date): Promise<void> {
  await db.deleteFrom('send_gaps').where('expires_at', '<', now).execute()
}
