import { type RawAnswer, say } from './raw-http.ts'

/**
 * Seed of the inputs; others by HOSTILE_SEED=7 HOSTILE_RUNS=1000. A failure shows its input, or the seed that makes it.
 */
export const HOSTILE_SEED = Number(process.env.HOSTILE_SEED ?? 20261121)

/** Number of runs: HOSTILE_RUNS, or `usual`. */
export const hostileRuns = (usual = 30): number => Number(process.env.HOSTILE_RUNS ?? usual)

/**
 * Internals that an answer must not reveal: files, stacks, SQL, PostgreSQL's errors. No value that we send contains
 * them.
 */
export const INNARDS =
  /node_modules|\.ts:\d|\n\s+at |\bselect .* from\b|insert into|relation "|violates|syntax error|invalid input|invalid byte|SQLSTATE|kysely|busboy/i

/** Requests at once, so that those whose body never arrives do not delay the others. */
const AT_ONCE = 20

/**
 * Sends `count` raw requests. `problems` has the first ten answers, with their requests, that fail `isFine` or reveal
 * internals. `statuses` counts the answers.
 */
export async function sayHostile(
  { port, count, requestOf }: { port: number; count: number; requestOf: (seed: number) => string },
  isFine: (answer: RawAnswer) => boolean,
): Promise<{ problems: string; statuses: Record<number, number> }> {
  const problems: string[] = []
  const statuses: Record<number, number> = {}
  let next = 0
  const sayInTurn = async () => {
    for (let number = next++; number < count; number = next++) {
      const request = requestOf(HOSTILE_SEED + number)
      const answer = await say(port, request)
      const { status, body } = answer
      statuses[status] = (statuses[status] ?? 0) + 1
      if (isFine(answer) && !INNARDS.test(body)) continue
      problems.push(`${JSON.stringify(request).slice(0, 1_500)}\n${status} ${body.slice(0, 300)}`)
    }
  }
  await Promise.all(Array.from({ length: AT_ONCE }, sayInTurn))
  return { problems: problems.slice(0, 10).join('\n\n'), statuses }
}
