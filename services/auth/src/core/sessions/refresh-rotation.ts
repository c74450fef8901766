/**
 * The reuse rule of refresh tokens (specification, States; design.md 5.2). A session counts its refreshes; a token is as
 * good as its distance to that counter: current advances it, one behind gets the current one again within the reuse
 * interval, anything else behind is an attack. The first two are one statement, `rotateSessions` in rotate-session.store.ts; this
 * decides what to tell a caller whom the statement turned away.
 *
 * A token ahead of its session was made by us and committed: the database lost writes, in a failover or by a restore.
 */
export type RefreshVerdict = 'ahead' | 'reused' | 'raced'

export function judgeRefusal(presented: number, current: number): RefreshVerdict {
  if (presented > current) return 'ahead'
  // The statement refused it a moment ago, yet it is current now: the session moved in between; trying again is right.
  return presented === current ? 'raced' : 'reused'
}
