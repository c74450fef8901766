/** Measures the milliseconds to ready of `count` starts; each service stops before the next starts. */
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
