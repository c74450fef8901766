/** Milliseconds to ready of `count` starts, one after the other; each service is stopped before the next one begins. */
export async function startTimes(
  count: number,
  start: () => Promise<{ readyMs: number; stop(): Promise<unknown> }>,
): Promise<number[]> {
  const times: number[] = []
  for (let index = 0; index < count; index++) {
    const { readyMs, stop } = await start()
    times.push(readyMs)
    await stop()
  }
  return times
}
