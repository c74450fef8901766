import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { owns } from '../tokens/scopes.ts'
import type { ApiToken } from '../tokens/tokens.store.ts'
import { isClipId } from './clip-id.ts'
import { type Clip, findClip } from './clips.store.ts'

/** Throws not_found for a clip of another token, too. */
export async function findOwnClip({ db, now }: Pick<Deps, 'db' | 'now'>, token: ApiToken, id: string): Promise<Clip> {
  const clip = isClipId(id) ? await findClip(db, id, now()) : undefined
  if (!clip || !owns(token, clip)) throw apiError('not_found')
  if (clip.state === 'deleted') throw apiError('gone')
  return clip
}
