// Counts that stay in memory until they are written, every few seconds: a count costs no statement. Calls of tokens:
// ../tokens/request-counter.ts; views: ../views/view-counter.ts.
import type { Logger } from '@services/common/telemetry/logger'
import { outsideTrace } from '@services/common/telemetry/spans'

/** A killed process loses the counts of this long. */
const WRITE_EVERY_MS = 10_000

interface Options<Entry> {
  log: Logger
  /** Log line of a failed attempt. */
  notWritten: string
  /** Entries of one key are added together. */
  keyOf: (entry: Entry) => string
  add: (sum: Entry, entry: Entry) => void
  /** Stores the sums, in the order of their keys: one order everywhere prevents deadlocks between processes. */
  store: (sums: readonly Entry[]) => Promise<unknown>
}

/** Counts in memory, and writes while there is something to write. */
export function createWrittenCounts<Entry extends object>({ log, notWritten, keyOf, add, store }: Options<Entry>) {
  let sums = new Map<string, Entry>()
  let timer: NodeJS.Timeout | undefined
  let writing = Promise.resolve()

  const count = (entry: Entry): void => {
    const key = keyOf(entry)
    const sum = sums.get(key)
    if (sum) add(sum, entry)
    else sums.set(key, { ...entry })
    // An idle service writes nothing.
    timer ??= outsideTrace(() => setTimeout(() => void write(), WRITE_EVERY_MS).unref())
  }

  const flush = async () => {
    clearTimeout(timer)
    timer = undefined
    const entries = [...sums].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, sum]) => sum)
    sums = new Map()
    if (entries.length === 0) return
    await store(entries).catch((err) => {
      log.warn({ err }, notWritten)
      entries.forEach(count)
    })
  }

  /** Writes the counts, one attempt at a time; those that cannot be written are kept for the next. */
  const write = (): Promise<void> => {
    writing = writing.then(flush)
    return writing
  }

  return {
    count,
    write,
    close: async () => {
      await write()
      clearTimeout(timer)
    },
  }
}
