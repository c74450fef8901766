import { median } from '@services/common/bench/median'

const ROUNDS = Number(process.env.BENCH_ROUNDS || 5)

/** Measures all sides in each round, so that other load on the machine affects all; returns the median of each. */
export async function inTurns<Figures extends readonly number[]>(measure: () => Promise<Figures>): Promise<Figures> {
  const rounds: Figures[] = []
  for (let round = 0; round < ROUNDS; round++) rounds.push(await measure())
  const medians = rounds[0]?.map((_, side) => median(rounds.map((figures) => figures[side] as number)))
  return medians as readonly number[] as Figures
}

/** Milliseconds that the work takes. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now()
  await work()
  return performance.now() - startedAt
}
