import type { Kysely } from 'kysely'
import { type FoundFile, findFile } from '../../core/clips/renditions.store.ts'
import { type DB, RENDITION_KINDS, type RenditionKind } from '../../db/tables.ts'

/** Time for which other processes may not notice a deletion; docs/explanation/media/serving-files.md says so. */
const KNOWN_MS = 1_000
const MOST_KNOWN = 2_000

export interface KnownFiles {
  /** As `findFile`; what is ready is remembered for a second, because one player asks for a file many times. */
  find: (id: string, kind: RenditionKind) => Promise<FoundFile | undefined>
  /** After a deletion, which shows at once in the process that was asked for it. */
  forget: (id: string) => void
}

export function createKnownFiles(db: Kysely<DB>): KnownFiles {
  const known = new Map<string, { file: FoundFile; until: number }>()
  let deletions = 0
  return {
    find: async (id, kind) => {
      const key = `${id}.${kind}`
      const remembered = known.get(key)
      if (remembered && remembered.until > performance.now()) return remembered.file
      known.delete(key)
      // Counted from before the question: the answer may be old when it comes.
      const until = performance.now() + KNOWN_MS
      const deletionsBefore = deletions
      const file = await findFile(db, id, kind)
      if (file?.state !== 'ready' || deletions !== deletionsBefore) return file
      known.set(key, { file, until })
      const [oldest] = known.keys()
      if (known.size > MOST_KNOWN && oldest) known.delete(oldest)
      return file
    },
    forget: (id) => {
      deletions++
      for (const kind of RENDITION_KINDS) known.delete(`${id}.${kind}`)
    },
  }
}
