import type { Reads } from '@services/common/replica'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { isClipId } from './clip-id.ts'
import { type Clip, findClip } from './clips.store.ts'

/** Throws not_found, and gone for a deleted clip. */
export async function findPublicClip(db: Kysely<DB>, id: string): Promise<Clip> {
  const clip = isClipId(id) ? await findClip(db, id) : undefined
  if (!clip) throw apiError('not_found')
  if (clip.state === 'deleted') throw apiError('gone')
  return clip
}

/** Finds the clip of a public page, as it was a moment ago; new and unfinished clips as they are now. */
export const findShownClip = ({ reads }: { reads: Reads<DB> }, id: string): Promise<Clip> =>
  reads.recent(
    (db) => findPublicClip(db, id),
    ({ state }) => state === 'ready',
  )
