import { afterCommit } from '@services/common/database/after-commit'
import { BATCH, runBatches } from '@services/common/housekeeping/delete-in-batches'
import type { Queue } from '@services/common/queue/queue'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import type { Encryption } from '../keys/encryption.ts'
import { bringForward } from './deliveries.store.ts'
import { sealSecrets } from './secrets.ts'
import { lockWebhook, NO_FAILURES, RECEIVERS, updateWebhook, upsertWebhook } from './webhooks.store.ts'

/** Id of the receiver that AUTH_WEBHOOK_URL sets: the same in all processes. */
export const SETTINGS_RECEIVER_ID = '00000000-0000-4000-8000-000000000001'

interface Deps {
  db: Kysely<DB>
  now: () => Date
  log: Pick<Logger, 'warn'>
  encryption: Encryption
  config: Pick<Config, 'webhooks'>
  queue: Pick<Queue, 'announce'>
}

/**
 * Stores the receiver of the settings: those of the process that started last. A new address is enabled and gets what
 * waits at once; an old one stays as it is. A receiver that is no longer set gets no attempts, and its events wait,
 * because a process may lack the setting by mistake. Housekeeping deletes it after three days.
 */
export async function storeSettingsReceiver({ db, now, log, encryption, config, queue }: Deps): Promise<void> {
  const { receiver } = config.webhooks
  const broughtForward = await db.transaction().execute(async (trx) => {
    const stored = await lockWebhook(trx, SETTINGS_RECEIVER_ID)
    if (!receiver) {
      if (!stored || stored.unset_at) return 0
      await updateWebhook(trx, SETTINGS_RECEIVER_ID, { unset_at: now() })
      const text = 'AUTH_WEBHOOK_URL is not set: events for its receiver wait, and it is deleted after three days'
      await afterCommit(trx, () => log.warn({ webhookId: SETTINGS_RECEIVER_ID }, text))
      return 0
    }
    const { url, secrets, events } = receiver
    const isNew = stored?.url !== url
    await upsertWebhook(trx, {
      ...{ id: SETTINGS_RECEIVER_ID, url, events, description: 'AUTH_WEBHOOK_URL', unset_at: null },
      sealed_secrets: sealSecrets({ encryption }, SETTINGS_RECEIVER_ID, secrets),
      enabled: isNew || (stored?.enabled ?? true),
      disabled_reason: isNew ? null : (stored?.disabled_reason ?? null),
      ...(isNew && NO_FAILURES),
      created_at: stored?.created_at ?? now(),
      updated_at: now(),
    })
    await queue.announce(trx, RECEIVERS)
    return isNew ? bringForward(trx, SETTINGS_RECEIVER_ID, now()) : 0
  })
  if (broughtForward < BATCH) return
  await runBatches((limit) => bringForward(db, SETTINGS_RECEIVER_ID, now(), limit))
}
