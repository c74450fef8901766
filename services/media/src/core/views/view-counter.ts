// Views, counted in memory and written every few seconds, so that a view costs no statement. Memory alone has a hash of
// the visitor, with a key of the day. Requests that are views: http/record-view.ts. Tests:
// test/views.test.ts.
import { hash, randomBytes } from 'node:crypto'
import type { Logger } from '@services/common/telemetry/logger'
import { outsideTrace } from '@services/common/telemetry/spans'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { dayOf } from '../tokens/usage.store.ts'
import { addViews, type DayViews, type ViewKind } from './views.store.ts'

export type ViewCounter = ReturnType<typeof createViewCounter>

/** A killed process loses the views of this long. */
const WRITE_EVERY_MS = 10_000

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
  let counted = new Map<string, DayViews>()
  /** Times at which clients may count again, oldest first. */
  const recent = new Map<string, number>()
  let today = ''
  let key = ''
  let timer: NodeJS.Timeout | undefined

  const add = ({ clipId, day, page, embed, file }: DayViews) => {
    const name = `${clipId} ${day}`
    const entry = counted.get(name)
    if (entry) {
      entry.page += page
      entry.embed += embed
      entry.file += file
    } else counted.set(name, { clipId, day, page, embed, file })
    // An idle service writes nothing.
    timer ??= outsideTrace(() => setTimeout(() => void write(), WRITE_EVERY_MS).unref())
  }

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

  const flush = async () => {
    clearTimeout(timer)
    timer = undefined
    const entries = [...counted.values()]
    counted = new Map()
    if (entries.length === 0) return
    await addViews(db, entries).catch((err) => {
      log.warn({ err }, 'views not written, will retry')
      for (const entry of entries) add(entry)
    })
  }

  /** Writes the counts, one attempt at a time; those that cannot be written are kept for the next. */
  let writing = Promise.resolve()
  const write = (): Promise<void> => {
    writing = writing.then(flush)
    return writing
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
      add({ clipId: visit.clipId, day, page: 0, embed: 0, file: 0, [visit.kind]: 1 })
    },
    write,
    close: async () => {
      await write()
      clearTimeout(timer)
    },
  }
}
