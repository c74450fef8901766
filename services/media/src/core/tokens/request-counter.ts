import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { createWrittenCounts } from '../counts/written-counts.ts'
import { addRequests, type CountedRequests, dayOf } from './usage.store.ts'

export type RequestCounter = ReturnType<typeof createRequestCounter>

/** Counts the calls of tokens. */
export function createRequestCounter({ db, log, now }: { db: Kysely<DB>; log: Logger; now: () => Date }) {
  const counts = createWrittenCounts<CountedRequests>({
    ...{ log, notWritten: 'token usage not written, will retry' },
    keyOf: ({ tokenId, day }) => `${tokenId} ${day}`,
    add: (sum, { requests }) => {
      sum.requests += requests
    },
    store: (sums) => addRequests(db, sums),
  })
  return {
    count: (tokenId: string) => counts.count({ tokenId, day: dayOf(now()), requests: 1 }),
    write: counts.write,
    close: counts.close,
  }
}
