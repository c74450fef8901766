import { isUuid } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { findSourcesOfJobs, findTokenNames } from './dead-letters.store.ts'

/** Larger numbers are shown as this one: a count reads each job. */
export const MOST_COUNTED = 10_000
/** Most entries of each list. */
const MOST_LISTED = 100

export interface QueueState {
  /** Jobs that wait, by queue. */
  queues: { name: string; waiting: number }[]
  /** Clips that wait, by token; null for callers without one. Those with the most first. */
  waiting: { token: { id: string; name: string | null } | null; clips: number }[]
  /** Clips that are being made, longest first. */
  making: {
    clip_id: string | null
    token: { id: string; name: string | null } | null
    progress: number
    machine: string | null
    started_at: Date
  }[]
}

/** Reads what waits and what is being made. `names`: queues, the one that makes clips first. */
export async function readQueue(
  { db, queue }: Pick<Deps, 'db' | 'queue'>,
  names: readonly string[],
): Promise<QueueState> {
  const [clips = ''] = names
  const [counts, tenants, running] = await Promise.all([
    Promise.all(names.map((name) => queue.waiting(name, MOST_COUNTED))),
    queue.listTenants(clips, { counted: MOST_COUNTED, limit: MOST_LISTED }),
    queue.listRunning(clips, MOST_LISTED),
  ])
  const sources = await findSourcesOfJobs(
    db,
    running.map(({ data }) => String(data.sourceId)),
  )
  const ids = [...tenants.map(({ tenant }) => tenant), ...[...sources.values()].map(({ tokenId }) => tokenId)]
  const tokenNames = await findTokenNames(
    db,
    ids.flatMap((id) => (id !== null && isUuid(id) ? [id] : [])),
  )
  const tokenOf = (id: string | null) => (id === null || !isUuid(id) ? null : { id, name: tokenNames.get(id) ?? null })
  return {
    queues: names.map((name, index) => ({ name, waiting: counts[index] ?? 0 })),
    waiting: tenants.map(({ tenant, jobs }) => ({ token: tokenOf(tenant), clips: jobs })),
    making: running.map(({ data, startedAt }) => {
      const source = sources.get(String(data.sourceId))
      return {
        ...{ clip_id: source?.clipId ?? null, token: tokenOf(source?.tokenId ?? null) },
        ...{ progress: source?.progress ?? 0, machine: source?.worker ?? null, started_at: startedAt },
      }
    }),
  }
}
