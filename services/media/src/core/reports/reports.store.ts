import { deleteInBatches } from '@services/common/housekeeping/delete-in-batches'
import { type Insertable, type Kysely, sql, type Transaction } from 'kysely'
import type { DB } from '../../db/tables.ts'

/** Returns the key of the month; stores `fresh` if there is none. */
export async function keyOfMonth(db: Kysely<DB>, month: string, fresh: Buffer): Promise<Buffer> {
  const find = () => db.selectFrom('report_keys').select('key').where('month', '=', month).executeTakeFirst()
  const known = await find()
  if (known) return known.key
  await db
    .insertInto('report_keys')
    .values({ month, key: fresh })
    .onConflict((conflict) => conflict.column('month').doNothing())
    .execute()
  const { key } = (await find()) ?? {}
  if (!key) throw new Error('the key of this month was deleted')
  return key
}

export async function deleteKeysBefore(db: Kysely<DB>, month: string): Promise<void> {
  await db.deleteFrom('report_keys').where('month', '<', month).execute()
}

/** False when the reporter has reported the clip before. */
export async function insertReport(
  trx: Transaction<DB>,
  report: Omit<Insertable<DB['reports']>, 'state' | 'moderation_id'>,
): Promise<boolean> {
  const inserted = await trx
    .insertInto('reports')
    .values(report)
    .onConflict((conflict) => conflict.columns(['clip_id', 'reporter']).doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Counts the open reports of a clip, and the known reporters of those since `month` began. */
export async function countOpenReports(
  trx: Transaction<DB>,
  clipId: string,
  month: Date,
): Promise<{ open: number; reporters: number }> {
  return trx
    .selectFrom('reports')
    .select(({ fn }) => [
      fn.countAll<number>().as('open'),
      sql<number>`count(distinct reporter) filter (where created_at >= ${month})`.as('reporters'),
    ])
    .where('clip_id', '=', clipId)
    .where('state', '=', 'open')
    .executeTakeFirstOrThrow()
}

/** Clip of a report, and whether that is open. */
export async function findReport(
  db: Kysely<DB>,
  id: string,
): Promise<{ clipId: string; state: 'open' | 'closed'; reason: DB['reports']['reason'] } | undefined> {
  return db
    .selectFrom('reports')
    .select(['clip_id as clipId', 'state', 'reason'])
    .where('id', '=', id)
    .executeTakeFirst()
}

/** Closes open reports: one, or all of some clips. Returns their number. */
export async function closeReports(
  trx: Transaction<DB>,
  which: { id: string } | { clipIds: readonly string[] },
  moderationId: string,
): Promise<number> {
  const closed = await trx
    .updateTable('reports')
    .set({ state: 'closed', moderation_id: moderationId })
    .where('state', '=', 'open')
    .$if('id' in which, (query) => query.where('id', '=', (which as { id: string }).id))
    .$if('clipIds' in which, (query) =>
      query.where('clip_id', '=', sql<string>`any(${(which as { clipIds: string[] }).clipIds}::text[])`),
    )
    .executeTakeFirst()
  return Number(closed.numUpdatedRows)
}

const selectReports = (db: Kysely<DB>) =>
  db
    .selectFrom('reports')
    .innerJoin('clips', 'clips.id', 'reports.clip_id')
    .leftJoin('sources', 'sources.id', 'clips.source_id')
    .leftJoin('moderations', 'moderations.id', 'reports.moderation_id')
    .select([
      'reports.id',
      'reports.clip_id as clipId',
      'reports.reason',
      'reports.text',
      'reports.email',
      'reports.state',
      'reports.created_at as createdAt',
      'clips.title',
      'clips.nsfw',
      'clips.visibility',
      'clips.token_id as tokenId',
      'clips.hidden_at as hiddenAt',
      'sources.state as sourceState',
      'moderations.action',
      'moderations.note',
      'moderations.token_id as moderatorId',
      'moderations.created_at as decidedAt',
    ])

export type FoundReport = NonNullable<Awaited<ReturnType<typeof findWholeReport>>>

export const findWholeReport = (db: Kysely<DB>, id: string) =>
  selectReports(db).where('reports.id', '=', id).executeTakeFirst()

/** Lists reports, newest first. Open ones of deleted clips need no decision and are left out. */
export async function listReports(
  db: Kysely<DB>,
  state: 'open' | 'closed' | undefined,
  { after, limit }: { after: { createdAt: Date; id: string } | undefined; limit: number },
): Promise<FoundReport[]> {
  let query = selectReports(db).orderBy('reports.created_at', 'desc').orderBy('reports.id', 'desc').limit(limit)
  // A literal, so that a partial index matches.
  if (state !== undefined) query = query.where('reports.state', '=', sql.lit(state))
  if (state === 'open') query = query.where('clips.deleted_at', 'is', null)
  if (after) {
    query = query.where((column) =>
      column(column.refTuple('reports.created_at', 'reports.id'), '<', column.tuple(after.createdAt, after.id)),
    )
  }
  return query.execute()
}

export const deleteReportsBefore = (db: Kysely<DB>, before: Date) =>
  deleteInBatches(db, 'reports', { column: 'created_at', before })
