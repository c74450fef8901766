// Views of clips. Memory alone has a hash of the visitor, with a key of the day. Requests that are views:
// http/record-view.ts. Tests: test/views.test.ts.
import { hash, randomBytes } from 'node:crypto'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { createWrittenCounts } from '../counts/written-counts.ts'
import { dayOf } from '../tokens/usage.store.ts'
import { addViews, type DayViews, type ViewKind } from './views.store.ts'

export type ViewCounter = ReturnType<typeof createViewCounter>

/** Time in which one client views a clip once, in each way. */
const ONCE_IN_MS = 1_800_000

/** Bounds memory, about 10 MB. Beyond it each view counts, also a repeated one. */
const MAX_RECENT = 50_000

interface Visit {
  clipId: string
  kind: ViewKind
  /** Address and program of the visitor. */
  client: string
}

export function createViewCounter({ db, log, now }: { db: Kysely<DB>; log: Logger; now: () => Date }) {
  const counts = createWrittenCounts<DayViews>({
    ...{ log, notWritten: 'views not written, will retry' },
    keyOf: ({ clipId, day }) => `${clipId} ${day}`,
    add: (sum, { page, embed, file }) => {
      sum.page += page
      sum.embed += embed
      sum.file += file
    },
    store: (sums) => addViews(db, sums),
  })
  /** Times at which clients may count again, oldest first. */
  const recent = new Map<string, number>()
  let today = ''
  let key = ''

  const isRepeated = ({ clipId, kind, client }: Visit, at: number): boolean => {
    for (const [name, until] of recent) {
      if (until > at) break
      recent.delete(name)
    }
    const name = hash('sha256', `${key} ${clipId} ${kind} ${client}`, 'base64url')
    if (recent.has(name)) return true
    if (recent.size < MAX_RECENT) recent.set(name, at + ONCE_IN_MS)
    return false
  }

  return {
    record(visit: Visit): void {
      const at = now()
      const day = dayOf(at)
      // Nothing links the visits of two days.
      if (day !== today) {
        today = day
        key = randomBytes(16).toString('base64url')
        recent.clear()
      }
      if (isRepeated(visit, at.getTime())) return
      counts.count({ clipId: visit.clipId, day, page: 0, embed: 0, file: 0, [visit.kind]: 1 })
    },
    write: counts.write,
    close: counts.close,
  }
}
