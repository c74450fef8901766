/** Windows of time by key, kept by this process alone. */
export interface Windows {
  /** `until` in milliseconds since 1970. */
  begin(key: string, until: number): void
  leftMs(key: string): number
  /** How many were counted in the key's window, which begins with the first. */
  count(key: string, ms: number): number
  clear(): void
}

/** Keys are made by strangers: past this many, those whose window has expired are dropped. */
const MANY = 10_000

export function createWindows(now: () => Date): Windows {
  const windows = new Map<string, { until: number; count: number }>()
  const live = (key: string) => {
    const found = windows.get(key)
    return found && found.until > now().getTime() ? found : undefined
  }
  const begin = (key: string, until: number) => {
    if (windows.size >= MANY) dropEnded()
    const begun = { until, count: 0 }
    windows.set(key, begun)
    return begun
  }
  function dropEnded() {
    for (const key of windows.keys()) if (!live(key)) windows.delete(key)
    // None has ended: a flood of keys, whose memory is worth more than its counts.
    if (windows.size >= MANY) windows.clear()
  }
  return {
    begin,
    leftMs: (key) => Math.max(0, (live(key)?.until ?? 0) - now().getTime()),
    count: (key, ms) => ++(live(key) ?? begin(key, now().getTime() + ms)).count,
    clear: () => windows.clear(),
  }
}
