import { inOrder } from '@services/common/process/shutdown'
import { type CheckJob, STORAGE_QUEUE } from './core/administration/storage-queue.ts'
import { deliverWebhook } from './core/webhooks/deliver-webhook.ts'
import { WEBHOOK_QUEUE, type WebhookJob } from './core/webhooks/webhook-queue.ts'
import type { Deps } from './deps.ts'
import { runStoredCheck } from './flows/check/stored-check.ts'
import { startHousekeeping } from './housekeeping.ts'
import { makeExtrasOfSource } from './make/jobs/add-extras.ts'
import { makeVariantOfSource } from './make/jobs/add-variant.ts'
import {
  DEAD_TRANSCODE_QUEUE,
  EXTRAS_QUEUE,
  type ExtrasJob,
  SCAN_QUEUE,
  type ScanJob,
  TRANSCODE_QUEUE,
  type TranscodeJob,
  VARIANTS_QUEUE,
  type VariantJob,
} from './make/jobs/queues.ts'
import { scanSource } from './make/jobs/scan-source.ts'
import { failDeadSource, transcodeSource } from './make/jobs/transcode-source.ts'

/** Time that running transcodes have to finish at a stop, before they go back to the queue. */
const STOP_GRACE_MS = 5_000

/** Slots for other tokens: otherwise a few expensive clips of one token could block all others for minutes. */
const RESERVE_SLOTS = 1

/** One of each token: a variant may take minutes, or wait for a storage that does not answer. */
const VARIANT_SLOTS = { concurrency: 1 + RESERVE_SLOTS, maxPerTenant: 1 }

/** A scan mostly waits for its answer. */
const SCANS_AT_ONCE = 4

/**
 * Deliveries mostly wait for answers. One receiver has two of these slots at most (deliver-webhook.ts); all receivers
 * of a token have half of them, and so have all retries.
 */
const WEBHOOK_SLOTS = { concurrency: 6, maxPerTenant: 3, maxRetries: 3 }

/**
 * Transcodes, delivers webhooks, cleans up. The returned function gives jobs back and waits until files are removed.
 */
export async function startWorker(deps: Deps): Promise<() => Promise<void>> {
  const running = new Set<Promise<void>>()
  const tracked = (work: Promise<void>) => {
    running.add(work)
    return work.finally(() => running.delete(work))
  }
  const { concurrency } = deps.config.worker
  const slots = { concurrency: concurrency + RESERVE_SLOTS, maxPerTenant: concurrency }
  await deps.queue.work<TranscodeJob>(TRANSCODE_QUEUE.name, slots, (job) => tracked(transcodeSource(deps, job)))
  // Jobs that pg-boss moves to another queue are not notified of.
  const dead = { concurrency: 1, pollSeconds: 2 }
  await deps.queue.work<TranscodeJob>(DEAD_TRANSCODE_QUEUE, dead, (job) => failDeadSource(deps, job))
  if (deps.config.worker.extras) {
    await deps.queue.work<ExtrasJob>(EXTRAS_QUEUE.name, { concurrency: 1 }, (job) =>
      tracked(makeExtrasOfSource(deps, job)),
    )
  }
  await deps.queue.work<VariantJob>(VARIANTS_QUEUE.name, VARIANT_SLOTS, (job) =>
    tracked(makeVariantOfSource(deps, job)),
  )
  if (deps.config.moderation.scanner) {
    const scans = { concurrency: SCANS_AT_ONCE, maxPerTenant: SCANS_AT_ONCE - RESERVE_SLOTS }
    await deps.queue.work<ScanJob>(SCAN_QUEUE.name, scans, (job) => tracked(scanSource(deps, job)))
  }
  await deps.queue.work<WebhookJob>(WEBHOOK_QUEUE.name, WEBHOOK_SLOTS, (job) => tracked(deliverWebhook(deps, job)))
  await deps.queue.work<CheckJob>(STORAGE_QUEUE.name, { concurrency: 1 }, (job) => tracked(runStoredCheck(deps, job)))
  const stopHousekeeping = startHousekeeping(deps)
  return () =>
    inOrder(deps.log, [stopHousekeeping, () => deps.queue.stop(STOP_GRACE_MS), () => Promise.allSettled(running)])
}
