import { isClipId } from '../../core/clips/clip-id.ts'
import type { FoundFile } from '../../core/clips/renditions.store.ts'
import type { RenditionKind } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

/** Finds a file by a public address. Throws not_found, and gone for a deleted clip. */
export async function findPublicFile(
  { knownFiles }: Pick<Deps, 'knownFiles'>,
  id: string,
  kind: RenditionKind,
): Promise<FoundFile & { state: 'ready' | 'processing' }> {
  const file = isClipId(id) ? await knownFiles.find(id, kind) : undefined
  if (!file || file.state === 'failed') throw apiError('not_found')
  if (file.state === 'deleted') throw apiError('gone')
  return file
}
