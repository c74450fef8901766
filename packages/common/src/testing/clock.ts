/** A clock the test holds: starts at the real time, moves only by `advance`. */
export interface TestClock {
  now(): Date
  advance(by: { seconds: number }): void
}

export function createTestClock(): TestClock {
  let current = Date.now()
  return {
    now: () => new Date(current),
    advance: ({ seconds }) => {
      current += seconds * 1000
    },
  }
}
