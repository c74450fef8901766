import type { Deps } from '../../deps.ts'
import { type Delivery, restartDelivery } from './deliveries.store.ts'
import { TRY_FOR_MS } from './retry-plan.ts'
import { WEBHOOK_QUEUE, type WebhookJob } from './webhook-queue.ts'
import { lockWebhook, noteSuccess } from './webhooks.store.ts'

/** Sends an event again, now and with retries for another day. Also enables the webhook and clears its failures. */
export async function replayDelivery(
  { db, queue, now }: Pick<Deps, 'db' | 'queue' | 'now'>,
  delivery: { id: string; webhookId: string },
): Promise<Delivery | undefined> {
  const moment = now()
  const giveUpAt = new Date(moment.getTime() + TRY_FOR_MS)
  return db.transaction().execute(async (trx) => {
    if (!(await lockWebhook(trx, delivery.webhookId))) return undefined
    const restarted = await restartDelivery(trx, delivery, { now: moment, giveUpAt })
    if (!restarted) return undefined
    await noteSuccess(trx, delivery.webhookId)
    const job: WebhookJob = { deliveryId: restarted.id, attempt: restarted.attempts }
    await queue.send(trx, WEBHOOK_QUEUE.name, job)
    return restarted
  })
}
