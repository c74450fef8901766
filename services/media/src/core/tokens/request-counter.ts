import type { Logger } from '@services/common/telemetry/logger'
import { outsideTrace } from '@services/common/telemetry/spans'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { addRequests, type CountedRequests, dayOf } from './usage.store.ts'

export type RequestCounter = ReturnType<typeof createRequestCounter>

/** A killed process loses the calls of this long. */
const WRITE_EVERY_MS = 10_000

/** Counts the calls of tokens in memory and writes them every few seconds: a call costs no statement. */
export function createRequestCounter({ db, log, now }: { db: Kysely<DB>; log: Logger; now: () => Date }) {
  let counted = new Map<string, CountedRequests>()
  let timer: NodeJS.Timeout | undefined

  const add = (tokenId: string, day: string, requests: number) => {
    const key = `${tokenId} ${day}`
    const entry = counted.get(key) ?? { tokenId, day, requests: 0 }
    entry.requests += requests
    counted.set(key, entry)
    // An idle service writes nothing.
    timer ??= outsideTrace(() => setTimeout(() => void write(), WRITE_EVERY_MS).unref())
  }
  /** Writes the counts; those that cannot be written are kept for the next attempt. */
  const write = async () => {
    clearTimeout(timer)
    timer = undefined
    // One order everywhere prevents deadlocks between processes.
    const entries = [...counted.entries()].toSorted(([a], [b]) => (a < b ? -1 : 1)).map(([, entry]) => entry)
    counted = new Map()
    if (entries.length === 0) return
    await addRequests(db, entries).catch((err) => {
      log.warn({ err }, 'token usage not written, will retry')
      for (const { tokenId, day, requests } of entries) add(tokenId, day, requests)
    })
  }
  return {
    count: (tokenId: string) => add(tokenId, dayOf(now()), 1),
    write,
    close: async () => {
      await write()
      clearTimeout(timer)
    },
  }
}
