import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import type { Access } from './access.ts'
import { extendLifetime } from './clips.store.ts'

type Visited = Pick<Access, 'expiresAt' | 'slidingSeconds'> & { id: string }

export type VisitLog = ReturnType<typeof createVisitLog>

/** A lifetime is extended at most once a day, or once in half of itself if that is less. */
const EXTEND_EVERY_MS = 86_400_000

/** Time for which a process may know the old end of a lifetime (known-files.ts). */
const KNOWN_MS = 1_000

/** Extends the lifetime of clips by visits of a page or file. */
export function createVisitLog({ db, log, now }: { db: Kysely<DB>; log: Logger; now: () => Date }) {
  const extended = new Set<string>()
  return {
    /** Does not wait: the visitor gains nothing by it, and its failure does not fail the visit. */
    record({ id, expiresAt, slidingSeconds }: Visited): void {
      if (!expiresAt || slidingSeconds === null || extended.has(id)) return
      const spanMs = slidingSeconds * 1000
      const later = new Date(now().getTime() + spanMs)
      if (later.getTime() - expiresAt.getTime() < Math.min(EXTEND_EVERY_MS, spanMs / 2)) return
      extended.add(id)
      setTimeout(() => extended.delete(id), KNOWN_MS).unref()
      extendLifetime(db, { id, expiresAt, later }).catch((err) => log.warn({ err, id }, 'lifetime not extended'))
    },
  }
}
