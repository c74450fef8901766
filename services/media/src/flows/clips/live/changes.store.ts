// Changes of clips since a moment, as the database knows moments: by snapshots. A row is new for a reader if its
// transaction is not visible in the reader's snapshot. Numbers or times would lose rows: a transaction may take its
// number early and commit late, after a reader has passed it. A snapshot names the transactions that were open.
import { repeatBatch } from '@services/common/housekeeping/delete-in-batches'
import { type Kysely, sql } from 'kysely'
import type { ChangeKind, DB } from '../../../db/tables.ts'

/** Clips that a reader follows: of one token, null: of none, undefined: all; those that changed since a snapshot. */
export interface Followed {
  clipsOf: string | null | undefined
  since: string
}

/** The snapshot of this moment. `oldest` is its oldest open transaction: all before it is visible. */
export interface Moment {
  snapshot: string
  oldest: string
}

export interface ClipChange {
  clipId: string
  kinds: ChangeKind[]
  /** Number of its changes. */
  rows: number
}

export interface Most {
  clips: number
  changes: number
}

const NOW = sql`pg_current_snapshot()::text as snapshot, pg_snapshot_xmin(pg_current_snapshot())::text as oldest`

/**
 * Returns the moment, and whether it is later than `oldest` of another. It is not if the database was replaced by an
 * older copy of it.
 */
export async function findMoment(db: Kysely<DB>, oldest: string): Promise<Moment & { isLater: boolean }> {
  const { rows } = await sql<Moment & { isLater: boolean }>`
    select ${NOW}, ${oldest}::xid8 <= pg_snapshot_xmax(pg_current_snapshot()) as "isLater"`.execute(db)
  return rows[0] as Moment & { isLater: boolean }
}

/** A snapshot that shows no transaction from `oldest` on, those that have ended neither. */
export const snapshotOf = (oldest: string): string => `${oldest}:${oldest}:`

/**
 * Reads the changes that each reader has not seen, by clip, and the moment up to which these are all. Of a reader with
 * more clips or changes than `most` it returns one more, and not all. So the cost of a reader is bounded, however long
 * ago its snapshot claims to be.
 */
export async function readChanges(
  db: Kysely<DB>,
  readers: readonly Followed[],
  most: Most,
): Promise<Moment & { changes: (ClipChange & { reader: number })[] }> {
  const tokens = readers.map(({ clipsOf }) => clipsOf ?? null)
  const areAll = readers.map(({ clipsOf }) => clipsOf === undefined)
  const since = readers.map((reader) => reader.since)
  const table = sql.table('clip_changes')
  const isUnseen = sql`xid >= pg_snapshot_xmin(since) and not pg_visible_in_snapshot(xid, since)`
  const { rows } = await sql<Moment & { changes: (ClipChange & { reader: number })[] }>`
    select ${NOW}, (
      select coalesce(jsonb_agg(jsonb_build_object('reader', reader - 1, 'clipId', clip_id, 'kinds', kinds,
          'rows', changes)
        order by reader, changed_at), '[]')
      from unnest(${tokens}::uuid[], ${areAll}::boolean[], ${since}::pg_snapshot[])
        with ordinality followed (of_token, is_all, since, reader)
      cross join lateral (
        select clip_id, array_agg(distinct kind) as kinds, min(changed_at) as changed_at, count(*) as changes
        from (
          select * from ${table} where token_id = of_token and ${isUnseen}
          union all
          select * from ${table} where of_token is null and not is_all and token_id is null and ${isUnseen}
          union all
          select * from ${table} where is_all and ${isUnseen}
          limit ${most.changes + 1}
        ) unseen
        group by clip_id order by min(changed_at) limit ${most.clips + 1}
      ) changed) as changes`.execute(db)
  return rows[0] as Moment & { changes: (ClipChange & { reader: number })[] }
}

/**
 * Deletes changes that no reader returns for. The time of a row is that of its statement, so the margin is for the
 * transaction's end as well: none of ours takes minutes. Old rows are those of the lowest transactions, so each batch
 * reads no further than its size.
 */
export const deleteOldChanges = (db: Kysely<DB>): AsyncGenerator<void, void> =>
  repeatBatch(async (limit) => {
    const changes = sql.table('clip_changes')
    const { numAffectedRows } = await sql`
      delete from ${changes} where ctid = any (array(
        select ctid from (select ctid, changed_at from ${changes} order by xid limit ${limit}) lowest
        where changed_at < clock_timestamp() - interval '30 minutes'))`.execute(db)
    return Number(numAffectedRows)
  })
