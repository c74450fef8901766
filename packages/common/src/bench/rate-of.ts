/** Returns the calls a second of `atOnce` clients for `ms`, each with one call after the other. */
export async function rateOf(atOnce: number, ms: number, work: (client: number) => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  let done = 0
  const client = async (_: unknown, number: number) => {
    for (; performance.now() - startedAt < ms; done++) await work(number)
  }
  await Promise.all(Array.from({ length: atOnce }, client))
  return (done * 1000) / (performance.now() - startedAt)
}
