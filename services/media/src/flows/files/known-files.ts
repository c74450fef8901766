import type { Kysely } from 'kysely'
import { type FoundFile, findFile } from '../../core/clips/renditions.store.ts'
import { type DB, RENDITION_KINDS, type RenditionKind } from '../../db/tables.ts'

/** Time for which other processes may miss a deletion (docs/explanation/media/serving-files.md). */
const KNOWN_MS = 1_000
const MAX_KNOWN = 2_000

export type KnownFiles = ReturnType<typeof createKnownFiles>

export function createKnownFiles(db: Kysely<DB>) {
  const known = new Map<string, { file: FoundFile; until: number }>()
  let deletions = 0
  return {
    /** Like `findFile`; caches ready files for a second, because a player requests a file many times. */
    find: async (id: string, kind: RenditionKind, albumId?: string): Promise<FoundFile | undefined> => {
      const key = `${id}.${kind}`
      const cached = known.get(key)
      if (cached && cached.until > performance.now()) return cached.file
      known.delete(key)
      // Counted from before the query: its result may be old when it arrives.
      const until = performance.now() + KNOWN_MS
      const deletionsBefore = deletions
      const file = await findFile(db, id, kind, albumId)
      // A private clip takes as long as an unknown one, and is shown by the links of some albums.
      if (file?.state !== 'ready' || file.visibility === 'private' || deletions !== deletionsBefore) return file
      known.set(key, { file, until })
      const [oldest] = known.keys()
      if (known.size > MAX_KNOWN && oldest) known.delete(oldest)
      return file
    },
    /** Call it after a deletion, which then shows at once in this process. */
    evict: (id: string) => {
      deletions++
      for (const kind of RENDITION_KINDS) known.delete(`${id}.${kind}`)
    },
  }
}
