// Values that a test holds in place of the outside world: time, randomness, the mailbox.
/** Clock that starts at the real time and moves only by `advance`. */
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
