import { createHash } from 'node:crypto'
import { deleteBatch } from '@services/common/database'
import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'

export interface SendGap {
  /** What is spaced: mails of one kind to one address. */
  kind: string
  address: string
  gapSeconds: number
  now: Date
}

/** Seconds until the next message may be sent; 0: now. */
async function gapLeft(db: Kysely<DB>, gap: SendGap): Promise<number> {
  const last = await db.selectFrom('send_gaps').select('sent_at').where('key', '=', keyOf(gap)).executeTakeFirst()
  if (!last || last.sent_at <= sentBefore(gap)) return 0
  return Math.max(1, Math.ceil((last.sent_at.getTime() - sentBefore(gap).getTime()) / 1000))
}

/**
 * Takes the right to send to an address now: 0, or the seconds left to wait. Kept for known and unknown addresses alike,
 * or the wait would tell which accounts exist.
 */
export async function takeSendGap(db: Kysely<DB>, gap: SendGap): Promise<number> {
  const values = { sent_at: gap.now, expires_at: new Date(gap.now.getTime() + gap.gapSeconds * 1000) }
  const taken = await db
    .insertInto('send_gaps')
    .values({ key: keyOf(gap), ...values })
    .onConflict((conflict) =>
      conflict.column('key').doUpdateSet(values).where('send_gaps.sent_at', '<=', sentBefore(gap)),
    )
    .returning('key')
    .executeTakeFirst()
  return taken ? 0 : Math.max(1, await gapLeft(db, gap))
}

/** Undoes `takeSendGap`, unless somebody took it since. */
export async function giveBackSendGap(db: Kysely<DB>, gap: SendGap): Promise<void> {
  await db.deleteFrom('send_gaps').where('key', '=', keyOf(gap)).where('sent_at', '=', gap.now).execute()
}

const keyOf = ({ kind, address }: SendGap) => createHash('sha256').update(`${kind}\0${address}`).digest()

const sentBefore = ({ now, gapSeconds }: SendGap) => new Date(now.getTime() - gapSeconds * 1000)

/** Housekeeping. */
export function deleteExpiredSendGaps(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  return deleteBatch(db, 'send_gaps', sql`expires_at < ${before}`, limit)
}
