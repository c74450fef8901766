/** Jobs a second that a group may send without falling behind others. */
const JOBS_PER_SECOND = 1

/** Groups remembered at once; the one that has sent no job for longest is forgotten, and begins anew. */
export const MAX_GROUPS = 10_000

/** Retries come after all first attempts (pg-boss-tables.ts), so no turn is as late. */
export const LATEST_TURN = 999_999

export type GroupTurns = ReturnType<typeof createGroupTurns>

/**
 * Counts the jobs that each group sent lately from this process; the count is its next job's turn. It costs no
 * statement, and a newcomer comes before the rest of another group's thousands, from whichever process those were sent.
 */
export function createGroupTurns(nowMs: () => number = () => performance.now()) {
  const groups = new Map<string, { turn: number; at: number }>()
  const turnOf = ({ turn, at }: { turn: number; at: number }) =>
    Math.max(0, turn - ((nowMs() - at) / 1000) * JOBS_PER_SECOND)
  return {
    next(group: string): number {
      const last = groups.get(group)
      const turn = last ? turnOf(last) : 0
      groups.delete(group)
      const [oldest] = groups.keys()
      if (groups.size >= MAX_GROUPS && oldest !== undefined) groups.delete(oldest)
      groups.set(group, { turn: Math.min(turn + 1, LATEST_TURN), at: nowMs() })
      return Math.ceil(turn)
    },
  }
}
