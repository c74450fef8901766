import { deleteBatch, jsonb } from '@services/common/database'
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

export const deleteOldAuditEntries = (db: Kysely<DB>, before: Date, limit: number): Promise<number> =>
  deleteBatch(db, 'audit_log_entries', sql`created_at < ${before}`, limit)

/** Deletes the refused sign-ins among the next `limit` entries by age: building an index on the action takes a lock. */
export async function deleteRefusedSignIns(
  db: Kysely<DB>,
  before: Date,
  after: Position | undefined,
  limit: number,
): Promise<{ last: Position | undefined; hasMore: boolean }> {
  const entries = sql.table('audit_log_entries')
  const time = after && sql`${after.created_at}::timestamptz`
  const isAfter = after ? sql`and created_at >= ${time} and (created_at > ${time} or id < ${after.id}::uuid)` : sql``
  const { rows } = await sql<Position & { seen: number }>`
    with scanned as materialized (
      select id, created_at, payload ->> 'action' as action from ${entries}
      where created_at < ${before} ${isAfter}
      order by created_at, id desc limit ${limit}
    ), gone as (
      delete from ${entries} where id = any (array(
        select id from ${entries} where id = any (array(select id from scanned where action = 'login_failed'))
        for update skip locked))
    )
    select id, created_at::text, (select count(*)::integer from scanned) as seen
    from scanned order by scanned.created_at desc, id limit 1`.execute(db)
  const [last] = rows
  if (!last) return { last: after, hasMore: false }
  return { last: { id: last.id, created_at: last.created_at }, hasMore: last.seen === limit }
}
