import { PLANNED_EACH_TIME } from '@services/common/database/connection'
import { type ExpressionBuilder, type Kysely, sql } from 'kysely'
import { jsonArrayFrom } from 'kysely/helpers/postgres'
import type { DB, SourceState, Visibility } from '../../db/tables.ts'
import { type Clip, selectClips } from '../clips/clips.store.ts'
import { type ClipFile, FILE_COLUMNS } from '../clips/renditions.store.ts'

export interface ClipFilter {
  /** Null: clips without a token; undefined: all clips. */
  tokenId: string | null | undefined
  /** Made by `tagKey`. */
  tagKey: string | undefined
  /** Album in which the clips are; `searchClips` alone knows it. */
  albumId?: string | undefined
  state: SourceState | undefined
  nsfw: boolean | undefined
  visibility: Visibility | undefined
  /** Earliest time of the creation. */
  from: Date | undefined
  /** Time before which the clip was created. */
  to: Date | undefined
  /** Clips that have expired by then are left out. */
  now: Date
}

/**
 * Condition of clips that are not deleted, in the words of `clips_visibility_of_token_idx`. No other index of clips has
 * them: the planner would not know which of two is shorter.
 */
export const hasVisibility = (visibility: Visibility) =>
  sql<boolean>`source_id is not null and visibility = ${visibility}`

export type Direction = 'asc' | 'desc'

export type ListedClip = Clip & { files: ClipFile[] }

/**
 * Lists clips that are neither deleted nor expired, with their files, by creation; `after` is the last clip of the
 * previous page. `visibility` needs a token and no tag, for which it has an index.
 */
export async function listClips(
  db: Kysely<DB>,
  { tokenId, tagKey, state, nsfw, visibility, from, to, now }: ClipFilter,
  { after, order, limit }: { after: Pick<Clip, 'createdAt' | 'id'> | undefined; order: Direction; limit: number },
): Promise<ListedClip[]> {
  // Both have an index for each list, which holds all that the conditions name but the state.
  const listed =
    tagKey === undefined
      ? db
          .selectFrom('clips')
          .select(['id', 'token_id', 'created_at', 'nsfw'])
          .where(visibility === undefined ? sql<boolean>`deleted_at is null` : hasVisibility(visibility))
      : db
          .selectFrom('clip_tags')
          .select(['clip_id as id', 'token_id', 'created_at', 'nsfw'])
          .where('tag_key', '=', tagKey)
  let page = db
    .selectFrom(listed.as('listed'))
    .innerJoin('clips', 'clips.id', 'listed.id')
    .innerJoin('sources', 'sources.id', 'clips.source_id')
    .select(['listed.id', 'listed.created_at'])
    .where(isNotExpired(now))
    .orderBy('listed.created_at', order)
    .orderBy('listed.id', order)
    .limit(limit)
  if (tokenId === null) page = page.where('listed.token_id', 'is', null)
  else if (tokenId !== undefined) page = page.where('listed.token_id', '=', tokenId)
  if (nsfw !== undefined) page = page.where('listed.nsfw', '=', nsfw)
  if (from) page = page.where('listed.created_at', '>=', from)
  if (to) page = page.where('listed.created_at', '<', to)
  // A literal, so that a rare state is found by its partial index.
  if (state !== undefined) page = page.where('sources.state', '=', sql.lit(state))
  if (after) {
    const past = order === 'desc' ? '<' : '>'
    page = page.where((column) =>
      column(column.refTuple('listed.created_at', 'listed.id'), past, column.tuple(after.createdAt, after.id)),
    )
  }
  // The page first. Beside the cost of files and posters of all clips, an index that reads clips of other tokens
  // seemed as cheap to the planner.
  return selectWithFiles(db, now)
    .modifyFront(sql.raw(PLANNED_EACH_TIME))
    .innerJoin(page.as('page'), 'page.id', 'clips.id')
    .orderBy('page.created_at', order)
    .orderBy('page.id', order)
    .execute()
}

/**
 * Clips `ids` in their order, with their files, without those that are deleted meanwhile or expired. With `tokenId`,
 * clips of other tokens are not read, so that they take the time of unknown ones.
 */
export async function listClipsById(
  db: Kysely<DB>,
  ids: readonly string[],
  now: Date,
  tokenId?: string,
): Promise<ListedClip[]> {
  const rows = await selectWithFiles(db, now)
    .where('clips.id', '=', sql<string>`any(${ids}::text[])`)
    .$if(tokenId !== undefined, (query) => query.where('clips.token_id', '=', tokenId as string))
    .execute()
  const byId = new Map(rows.map((row) => [row.id, row]))
  return ids.flatMap((id) => byId.get(id) ?? [])
}

/** Selects clips that are neither deleted nor expired, with their files. */
export const selectWithFiles = (db: Kysely<DB>, now: Date) =>
  selectClips(db)
    .select((column) =>
      jsonArrayFrom(
        column
          .selectFrom('renditions')
          .select(FILE_COLUMNS)
          .whereRef('renditions.source_id', '=', 'clips.source_id')
          .orderBy('kind'),
      ).as('files'),
    )
    .where(isNotExpired(now))

const isNotExpired = (now: Date) => (where: ExpressionBuilder<DB, 'clips'>) =>
  where.or([where('clips.expires_at', 'is', null), where('clips.expires_at', '>', now)])
