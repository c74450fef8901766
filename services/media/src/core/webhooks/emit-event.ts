// Events of clips and albums. They are written in the transaction of the change, so that an event is sent if and only
// if the change happened. Delivery: deliver-webhook.ts.
import { batchesOf } from '@services/common/concurrency/chunks'
import { jsonb } from '@services/common/database/pool'
import { BATCH } from '@services/common/housekeeping/delete-in-batches'
import type { Transaction } from 'kysely'
import type { AdminEvent, AlbumEvent, ClipEvent, DB, WebhookEvent } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { errorCatalogue } from '../../errors.ts'
import { toResult } from '../clip-views/clip-result.ts'
import type { Clip } from '../clips/clips.store.ts'

import {
  findAdminListeners,
  findListeners,
  findTokenListeners,
  insertDeliveries,
  type Listener,
} from './deliveries.store.ts'
import { sendJobs, TRY_FOR_MS } from './webhook-queue.ts'

/** Commands have no queue; housekeeping finds their deliveries within minutes. */
export type EmitDeps = Pick<Deps, 'newId' | 'now' | 'config'> & { queue?: Deps['queue'] }

type DeletionReason = 'expired' | 'removed' | 'blocked'

/** Writes deliveries for these clips or all of a source. Call it before a deletion, which leaves no payload. */
export async function emitEvent(
  deps: EmitDeps,
  trx: Transaction<DB>,
  event: ClipEvent,
  clips: ({ sourceId: string } | { clipIds: readonly string[] }) & { reason?: DeletionReason | undefined },
): Promise<void> {
  const listeners = await findListeners(trx, clips, event, deps.now())
  const { reason } = clips
  const events = listeners.map(({ clip, ...listener }) => ({
    ...listener,
    data: { ...describe(deps, event, clip), ...(reason && { reason }) },
  }))
  await queueDeliveries(deps, trx, event, events)
}

/** Writes deliveries of an event of any clips to the webhooks of admins. */
export async function emitToAdmins(
  deps: EmitDeps,
  trx: Transaction<DB>,
  event: AdminEvent,
  clips: readonly ({ id: string } & Record<string, unknown>)[],
): Promise<void> {
  const listeners = await findAdminListeners(trx, event, deps.now())
  const events = listeners.flatMap((listener) => clips.map((data) => ({ ...listener, data })))
  await queueDeliveries(deps, trx, event, events)
}

/** Writes deliveries for an album of a token; `describeIt` is called if there is a webhook. */
export async function emitAlbumEvent(
  deps: EmitDeps,
  trx: Transaction<DB>,
  event: AlbumEvent,
  { tokenId, describeIt }: { tokenId: string; describeIt: () => Promise<object | undefined> },
): Promise<void> {
  const listeners = await findTokenListeners(trx, tokenId, event, deps.now())
  const data = listeners.length > 0 ? await describeIt() : undefined
  if (data)
    await queueDeliveries(
      deps,
      trx,
      event,
      listeners.map((listener) => ({ ...listener, data })),
    )
}

async function queueDeliveries(
  deps: EmitDeps,
  trx: Transaction<DB>,
  event: WebhookEvent,
  events: readonly (Listener & { data: object })[],
): Promise<void> {
  const now = deps.now()
  const identified = events.map((described) => ({ ...described, id: deps.newId() }))
  // PostgreSQL takes 65,535 parameters in a statement, and one change may be about more clips.
  for (const batch of batchesOf(identified, BATCH)) {
    const deliveries = batch.map(({ id, webhookId, data }) => ({
      id,
      webhook_id: webhookId,
      type: event,
      payload: jsonb({ type: event, timestamp: now.toISOString(), data }),
      state: 'pending' as const,
      next_attempt_at: now,
      give_up_at: new Date(now.getTime() + TRY_FOR_MS),
      created_at: now,
    }))
    await insertDeliveries(trx, deliveries)
    if (deps.queue) await sendJobs(deps.queue, trx, batch)
  }
}

function describe({ config }: EmitDeps, event: ClipEvent, clip: Clip): object {
  const { id, errorCode } = clip
  if (event === 'media.deleted') return { id, state: 'deleted' }
  if (event === 'media.ready') return { id, state: 'ready', ...toResult(clip, config.site) }
  const code = errorCode ?? 'internal'
  return { id, state: 'failed', failure: { code, message: errorCatalogue[code].message } }
}
