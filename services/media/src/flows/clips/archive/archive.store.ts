import { type Kysely, sql } from 'kysely'
import type { DB, MainKind } from '../../../db/tables.ts'

export interface ArchivedFile {
  id: string
  title: string | null
  createdAt: Date
  /** Hash in hex. */
  sha256: string
  bytes: number
}

/**
 * Files of this kind of the clips `ids`: those of one token, unless it is undefined. Clips that are deleted, expired,
 * hidden, failed or not ready have none.
 */
export async function findArchivedFiles(
  db: Kysely<DB>,
  { ids, kind, tokenId, now }: { ids: readonly string[]; kind: MainKind; tokenId: string | undefined; now: Date },
): Promise<ArchivedFile[]> {
  return db
    .selectFrom('clips')
    .innerJoin('sources', 'sources.id', 'clips.source_id')
    .innerJoin('renditions', (join) =>
      join.onRef('renditions.source_id', '=', 'sources.id').on('renditions.kind', '=', kind),
    )
    .select(['clips.id', 'clips.title', 'clips.created_at as createdAt', 'renditions.bytes'])
    .select(sql<string>`encode(${sql.ref('renditions.sha256')}, 'hex')`.as('sha256'))
    .where('clips.id', '=', sql<string>`any(${ids}::text[])`)
    .$if(tokenId !== undefined, (query) => query.where('clips.token_id', '=', tokenId as string))
    .where('sources.state', '<>', 'failed')
    .where('sources.held', '=', false)
    .where('clips.hidden_at', 'is', null)
    .where((where) => where.or([where('clips.expires_at', 'is', null), where('clips.expires_at', '>', now)]))
    .execute()
}
