import { endOfView, requireVisible } from '../../core/clip-access/require-visible.ts'
import { albumIn, type LinkQuery } from '../../core/clip-access/share-links.ts'
import { isClipId } from '../../core/clips/clip-id.ts'
import type { FoundFile } from '../../core/clips/renditions.store.ts'
import type { RenditionKind } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/** `endsAt`: end of the clip's lifetime or of its link; undefined for one that lasts. */
export type PublicFile = FoundFile & { state: 'ready' | 'processing'; endsAt: Date | undefined }

/**
 * Finds a file by a public address. Throws not_found, gone and hidden. A variant that is made of one file alone is
 * shown by the link of that file.
 */
export async function findPublicFile(
  deps: Pick<Deps, 'knownFiles' | 'config' | 'now'>,
  { id, kind, query }: { id: string; kind: RenditionKind; query: LinkQuery },
): Promise<PublicFile> {
  const file = isClipId(id) ? await deps.knownFiles.find(id, kind, albumIn(query)) : undefined
  if (!file) throw apiError('not_found')
  const link = requireVisible(deps, { ...file, id, isDeleted: file.state === 'deleted' }, { target: kind, query })
  if (file.state !== 'ready' && file.state !== 'processing') throw apiError('not_found')
  return { ...file, endsAt: endOfView(file, link) }
}
