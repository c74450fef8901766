import { type Kysely, sql } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/postgres'
import { type Clip, selectClips } from '../../core/clips/clips.store.ts'
import { type ClipFile, FILE_COLUMNS } from '../../core/clips/renditions.store.ts'
import type { DB, SourceState } from '../../db/tables.ts'

export interface ClipFilter {
  /** Null: clips without a token; undefined: all clips. */
  tokenId: string | null | undefined
  /** Made by `tagKey`. */
  tagKey: string | undefined
  state: SourceState | undefined
  nsfw: boolean | undefined
}

/** Lists clips that are not deleted, with their files, newest first; `after` is the last clip of the previous page. */
export async function listClips(
  db: Kysely<DB>,
  { tokenId, tagKey, state, nsfw }: ClipFilter,
  { after, limit }: { after: Pick<Clip, 'createdAt' | 'id'> | undefined; limit: number },
): Promise<(Clip & { files: ClipFile[] })[]> {
  let query = selectClips(db)
    .select((column) =>
      jsonArrayFrom(
        column
          .selectFrom('renditions')
          .select(FILE_COLUMNS)
          .whereRef('renditions.source_id', '=', 'clips.source_id')
          .orderBy('kind'),
      ).as('files'),
    )
    .where('clips.deleted_at', 'is', null)
    .orderBy('clips.created_at', 'desc')
    .orderBy('clips.id', 'desc')
    .limit(limit)
  if (tokenId === null) query = query.where('clips.token_id', 'is', null)
  else if (tokenId !== undefined) query = query.where('clips.token_id', '=', tokenId)
  if (tagKey !== undefined) query = query.where('clips.tag_keys', '@>', sql<string[]>`array[${tagKey}::text]`)
  if (nsfw !== undefined) query = query.where('clips.nsfw', '=', nsfw)
  // A literal, so that a rare state is found by its partial index.
  if (state !== undefined) query = query.where('sources.state', '=', sql.lit(state))
  if (after) {
    query = query.where((column) =>
      column(column.refTuple('clips.created_at', 'clips.id'), '<', column.tuple(after.createdAt, after.id)),
    )
  }
  return query.execute()
}
