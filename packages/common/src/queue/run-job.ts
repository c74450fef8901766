// Runs a job's handler and decides the result: done, failed, given up, or run again in the same attempt once a lost
// database accepts writes. When and how often a failed job is retried: queue-definition.ts.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Span } from '@opentelemetry/api'
import type { Job, JobResult, PgBoss } from 'pg-boss'
import type { Logger } from 'pino'
import { isDatabaseUnavailable, isInterrupted, sqlStateOf } from '../database/errors.ts'
import { errorType, recordFailure, withoutTrace } from '../telemetry/spans.ts'

export interface QueueJob<Data> {
  id: string
  data: Data
  /** 0 at the first attempt. */
  retryCount: number
  /** Tenant or group that it was sent with. */
  group?: string | undefined
  /** Aborted when the claim is lost, the job expires or the worker stops. */
  signal: AbortSignal
}

/**
 * Interval of checks for a writable server: shorter than the supervisor's, which takes away jobs without heartbeats.
 */
const CHECK_SERVER_EVERY_MS = 250
/** Losses of the database that a job survives in one attempt; after more it fails as any other. */
const MAX_LOSSES = 3

/** Failure that no retry can fix: the job goes to the dead-letter queue at once. */
export class PermanentFailure extends Error {
  override readonly name = 'PermanentFailure'
}

interface Run {
  span: Span
  log: Logger
  /** Aborted when the worker stops. */
  stopping: AbortSignal
  /** Puts the job, which failed, behind first attempts if its queue asks for that. */
  demote: () => Promise<void>
}

export async function runJob<Data extends object>(
  boss: PgBoss,
  job: Job<Data>,
  handle: (job: QueueJob<Data>) => Promise<void>,
  how: Run,
  losses = 0,
): Promise<JobResult> {
  const { id, data, retryCount, signal } = job
  const { span, log, stopping } = how
  try {
    await handle({ id, data: withoutTrace(data), retryCount, group: job.groupId ?? undefined, signal })
    return { id, status: 'completed' }
  } catch (err) {
    // The failure could not be stored either: the job would wait until its heartbeat expires.
    const isLoss = isDatabaseUnavailable(err) && !isInterrupted(err)
    if (isLoss && losses < MAX_LOSSES && (await regain(boss, job, err, stopping))) {
      log.warn({ err }, 'job lost its database, runs again')
      return runJob(boss, job, handle, how, losses + 1)
    }
    recordFailure(span, errorType(err))
    if (err instanceof PermanentFailure) {
      log.error({ err }, 'job failed for good')
      return { id, status: 'deadletter', output: { message: err.message } }
    }
    log.warn({ err, retryCount }, 'job failed, will be retried unless attempts are exhausted')
    await how.demote()
    return { id, status: 'failed', output: { message: (err as Error).message } }
  }
}

/**
 * Waits until a job that failed with `err` can run again on a writable server. False for other failures, or when the
 * job was lost.
 */
async function regain(boss: PgBoss, job: Job, err: unknown, stopping: AbortSignal): Promise<boolean> {
  const signal = AbortSignal.any([job.signal, stopping])
  // A broken connection may be one to an upstream; an SQLSTATE is certainly the database's.
  let hasLostDatabase = sqlStateOf(err) !== undefined
  while (!signal.aborted) {
    try {
      // Renews the heartbeat, so that the supervisor does not give the job to another worker.
      const { affected }: { affected?: number } = await boss.touch(job.name, job)
      return hasLostDatabase && affected === 1
    } catch (error) {
      if (!isDatabaseUnavailable(error)) return false
      hasLostDatabase = true
    }
    await sleep(CHECK_SERVER_EVERY_MS, undefined, { signal }).catch(() => {})
  }
  return false
}
