import type { Kysely } from 'kysely'
import { expect, test } from 'vitest'
import type { DB } from '../../db/tables.ts'
import { createQueueDepth } from './queue-depth.ts'
import type { Processing } from './sources.store.ts'

const DATABASE = {} as Kysely<DB>

/** Counts of a database in the test's hand; `counts` has the bounds of each. */
function waitingIn(database: Processing) {
  const counts: Processing[] = []
  let now = 0
  const count = async (_: unknown, _token: string | null, most: Processing) => {
    counts.push(most)
    return { all: Math.min(most.all, database.all), ofToken: Math.min(most.ofToken, database.ofToken) }
  }
  const waiting = createQueueDepth(count, () => now)
  const limits = { all: 200_000, ofToken: 100_000 }
  return {
    counts,
    later: (ms: number) => {
      now += ms
    },
    count: (token: string | null = 'one') => waiting.count(DATABASE, token, limits),
  }
}

test('far below the limits waiting clips are counted twice a second, all of them by one request for all tokens', async () => {
  const database = { all: 100_000, ofToken: 50_000 }
  const { counts, later, count } = waitingIn(database)
  for (let n = 0; n < 5; n++) expect(await count()).toEqual({ all: 100_000, ofToken: 50_000 })
  expect(counts).toEqual([{ all: 400_000, ofToken: 100_000 }])
  database.ofToken = 7
  expect(await count(null)).toEqual({ all: 100_000, ofToken: 7 })
  expect(counts.slice(1)).toEqual([{ all: 0, ofToken: 100_000 }])
  database.all = 100_400
  later(500)
  expect(await Promise.all([count(), count()])).toEqual([
    { all: 100_400, ofToken: 7 },
    { all: 100_000, ofToken: 7 },
  ])
  expect(counts.slice(2).map(({ all }) => all)).toEqual([400_000, 0])
})

test('no count is used after a second', async () => {
  const database = { all: 100_000, ofToken: 50_000 }
  const { later, count } = waitingIn(database)
  await count()
  later(1_000)
  database.all = 150_000
  database.ofToken = 60_000
  expect(await Promise.all([count(), count()])).toEqual(Array(2).fill({ all: 150_000, ofToken: 60_000 }))
})

test('within a thousand clips of a limit each count is new', async () => {
  const database = { all: 199_000, ofToken: 1 }
  const { count, later } = waitingIn(database)
  for (const all of [199_000, 199_001, 199_999, 200_000, 199_999, 399_999, 0]) {
    database.all = all
    expect(await count()).toEqual({ all, ofToken: 1 })
  }
  // A token without waiting clips has twice the limit of all.
  database.all = 199_500
  later(1_000)
  for (const ofToken of [0, 1, 0]) {
    database.ofToken = ofToken
    expect(await count()).toEqual({ all: 199_500, ofToken })
  }
  const ofOne = { all: 99_000, ofToken: 99_000 }
  const { count: countOne } = waitingIn(ofOne)
  for (const ofToken of [99_000, 99_001, 99_999, 100_000, 99_999]) {
    ofOne.ofToken = ofToken
    expect(await countOne()).toEqual({ all: 99_000, ofToken })
  }
})
