// Access to clips without a token. Every public address checks it here, and a refused clip looks like an unknown one.
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { isClipId } from '../clips/clip-id.ts'
import { type Clip, findClip } from '../clips/clips.store.ts'
import { requireVisible } from './require-visible.ts'
import { albumIn, type Link, type PublicAddress } from './share-links.ts'

/** A clip that a request without a token may see, and the link that it came with if the clip is private. */
export interface ShownClip {
  clip: Clip
  link: Link | undefined
}

/**
 * Finds the clip of a public page, as it was a moment ago; new and unfinished clips as they are now. Throws not_found,
 * gone and hidden.
 */
export const findShownClip = (
  deps: Pick<Deps, 'reads' | 'config' | 'now'>,
  id: string,
  address: PublicAddress,
): Promise<ShownClip> =>
  deps.reads.recent(
    async (db) => {
      const found = isClipId(id) ? await findClip(db, id, deps.now(), albumIn(address.query)) : undefined
      if (!found) throw apiError('not_found')
      const link = requireVisible(deps, { ...found, isDeleted: found.state === 'deleted' }, address)
      return { clip: found as Clip, link }
    },
    ({ clip }) => clip.state === 'ready',
  )
