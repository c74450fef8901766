import { type Kysely, sql } from 'kysely'
import type { DB, SourceState } from '../../db/tables.ts'
import type { ErrorCode } from '../../errors.ts'

export interface ClipState {
  state: SourceState | 'deleted'
  progress: number
  errorCode: ErrorCode | null
}

/** States of the clips `ids` that exist. */
export async function findStates(db: Kysely<DB>, ids: readonly string[]): Promise<Map<string, ClipState>> {
  const rows = await db
    .selectFrom('clips')
    .leftJoin('sources', 'sources.id', 'clips.source_id')
    .select(['clips.id', 'sources.state', 'sources.progress', 'sources.error_code'])
    .where('clips.id', '=', sql<string>`any(${ids}::text[])`)
    .execute()
  return new Map(
    rows.map(({ id, state, progress, error_code: errorCode }) => [
      id,
      { state: state ?? 'deleted', progress: progress ?? 0, errorCode },
    ]),
  )
}
