import { type RawAnswer, say } from './raw-http.ts'

/** Another one looks elsewhere: HOSTILE_SEED=7 HOSTILE_RUNS=1000. A failure shows its case, or names the seed and the path to it. */
export const HOSTILE_SEED = Number(process.env.HOSTILE_SEED ?? 20261121)

/** How long to look: HOSTILE_RUNS, or `usual` where nobody asks for more. */
export const hostileRuns = (usual = 30): number => Number(process.env.HOSTILE_RUNS ?? usual)

/** Words of the machinery: files, stacks, SQL and what PostgreSQL says of it. None of the values we send has them. */
export const INNARDS =
  /node_modules|\.ts:\d|\n\s+at |\bselect .* from\b|insert into|relation "|violates|syntax error|invalid input|invalid byte|SQLSTATE|kysely|busboy/i

/** As many at once: those whose body never comes are ended after a moment, and the others need not wait for that. */
const AT_ONCE = 20

/**
 * Says `count` requests on the wire. `problems` is empty where `isFine` holds for every answer and none tells of the inside; else the first
 * ten, each with its request. `statuses` counts what was answered.
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
