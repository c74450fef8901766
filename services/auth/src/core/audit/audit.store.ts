import { jsonb } from '@services/common/database/pool'
import { BATCH, deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql } from 'kysely'
import type { Position } from '../../db/position.ts'
import type { DB, Metadata } from '../../db/tables.ts'

export interface AuditEntry {
  id: string
  payload: Metadata
  ipAddress: string
  now: Date
}

export async function insertAuditEntry(db: Kysely<DB>, { id, payload, ipAddress, now }: AuditEntry): Promise<void> {
  await db
    .insertInto('audit_log_entries')
    .values({ id, payload: jsonb(payload), ip_address: ipAddress, created_at: now })
    .execute()
}

export const deleteOldAuditEntries = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'audit_log_entries', { column: 'created_at', before })

/**
 * Deletes refused sign-ins, along the index on the time: building one on the action takes a lock. Returns the position
 * of the next run, since no entry is written with an old time.
 */
export async function* deleteRefusedSignIns(
  db: Kysely<DB>,
  before: Date,
  after: Position | undefined,
): AsyncGenerator<void, Position | undefined> {
  const entries = sql.table('audit_log_entries')
  for (let last = after; ; ) {
    const time = last && sql`${last.created_at}::timestamptz`
    const isNext = last ? sql`and created_at >= ${time} and (created_at > ${time} or id < ${last.id}::uuid)` : sql``
    const { rows } = await sql<Position & { seen: number }>`
      with scanned as materialized (
        select id, created_at, payload ->> 'action' as action from ${entries}
        where created_at < ${before} ${isNext}
        order by created_at, id desc limit ${BATCH}
      ), gone as (
        delete from ${entries} where id = any (array(
          select id from ${entries} where id = any (array(select id from scanned where action = 'login_failed'))
          for update skip locked))
      )
      select id, created_at::text, (select count(*)::integer from scanned) as seen
      from scanned order by scanned.created_at desc, id limit 1`.execute(db)
    const [next] = rows
    if (next) last = { id: next.id, created_at: next.created_at }
    if (!next || next.seen < BATCH) return last
    yield
  }
}
