import { PLANNED_EACH_TIME } from '@services/common/database-connection'
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

/** Lists clips that are neither deleted nor expired, with their files, newest first; `after` is the last clip of the previous page. */
export async function listClips(
  db: Kysely<DB>,
  { tokenId, tagKey, state, nsfw }: ClipFilter,
  { after, limit, now }: { now: Date; after: Pick<Clip, 'createdAt' | 'id'> | undefined; limit: number },
): Promise<(Clip & { files: ClipFile[] })[]> {
  // Both have an index for each list, which holds all that the conditions name but the state.
  const listed =
    tagKey === undefined
      ? db.selectFrom('clips').select(['id', 'token_id', 'created_at', 'nsfw']).where('deleted_at', 'is', null)
      : db
          .selectFrom('clip_tags')
          .select(['clip_id as id', 'token_id', 'created_at', 'nsfw'])
          .where('tag_key', '=', tagKey)
  let query = selectClips(db)
    .modifyFront(sql.raw(PLANNED_EACH_TIME))
    .innerJoin(listed.as('listed'), 'listed.id', 'clips.id')
    .select((column) =>
      jsonArrayFrom(
        column
          .selectFrom('renditions')
          .select(FILE_COLUMNS)
          .whereRef('renditions.source_id', '=', 'clips.source_id')
          .orderBy('kind'),
      ).as('files'),
    )
    .where((where) => where.or([where('clips.expires_at', 'is', null), where('clips.expires_at', '>', now)]))
    .orderBy('listed.created_at', 'desc')
    .orderBy('listed.id', 'desc')
    .limit(limit)
  if (tokenId === null) query = query.where('listed.token_id', 'is', null)
  else if (tokenId !== undefined) query = query.where('listed.token_id', '=', tokenId)
  if (nsfw !== undefined) query = query.where('listed.nsfw', '=', nsfw)
  // A literal, so that a rare state is found by its partial index.
  if (state !== undefined) query = query.where('sources.state', '=', sql.lit(state))
  if (after) {
    query = query.where((column) =>
      column(column.refTuple('listed.created_at', 'listed.id'), '<', column.tuple(after.createdAt, after.id)),
    )
  }
  return query.execute()
}
