import { createHash } from 'node:crypto'
import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'

export interface SendGap {
  kind: string
  address: string
  gapSeconds: number
  now: Date
}

/** Takes a gap and returns 0, or the seconds left to wait; known and unknown addresses wait alike. */
export async function takeSendGap(db: Kysely<DB>, gap: SendGap): Promise<number> {
  const { now, gapSeconds } = gap
  const key = keyOf(gap)
  const values = { sent_at: now, expires_at: new Date(now.getTime() + gapSeconds * 1000) }
  const sentBefore = new Date(now.getTime() - gapSeconds * 1000)
  const taken = await db
    .insertInto('send_gaps')
    .values({ key, ...values })
    .onConflict((conflict) => conflict.column('key').doUpdateSet(values).where('send_gaps.sent_at', '<=', sentBefore))
    .returning('key')
    .executeTakeFirst()
  if (taken) return 0
  const last = await db.selectFrom('send_gaps').select('sent_at').where('key', '=', key).executeTakeFirst()
  return Math.max(1, Math.ceil(((last?.sent_at.getTime() ?? 0) - sentBefore.getTime()) / 1000))
}

/** Undoes `takeSendGap`, unless another request took the gap since. */
export async function releaseSendGap(db: Kysely<DB>, gap: SendGap): Promise<void> {
  await db.deleteFrom('send_gaps').where('key', '=', keyOf(gap)).where('sent_at', '=', gap.now).execute()
}

const keyOf = ({ kind, address }: SendGap) => createHash('sha256').update(`${kind}\0${address}`).digest()

export const deleteExpiredSendGaps = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'send_gaps', { column: 'expires_at', before })
