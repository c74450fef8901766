import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import type { Encryption } from '../keys/encryption.ts'
import { sealSecrets } from './secrets.ts'
import { deleteWebhook, findWebhook, NO_FAILURES, upsertWebhook } from './webhooks.store.ts'

/** Id of the receiver that AUTH_WEBHOOK_URL sets: the same in all processes. */
export const SETTINGS_RECEIVER_ID = '00000000-0000-4000-8000-000000000001'

interface Deps {
  db: Kysely<DB>
  now: () => Date
  encryption: Encryption
  config: Pick<Config, 'webhooks'>
}

/** Stores the receiver of the settings, or deletes it. A new address is enabled; an old one stays as it is. */
export async function storeSettingsReceiver({ db, now, encryption, config }: Deps): Promise<void> {
  const { receiver } = config.webhooks
  const stored = await findWebhook(db, SETTINGS_RECEIVER_ID)
  if (!receiver) {
    if (stored) await db.transaction().execute((trx) => deleteWebhook(trx, SETTINGS_RECEIVER_ID))
    return
  }
  const { url, secrets, events } = receiver
  const isNew = stored?.url !== url
  await upsertWebhook(db, {
    ...{ id: SETTINGS_RECEIVER_ID, url, events, description: 'AUTH_WEBHOOK_URL' },
    sealed_secrets: sealSecrets({ encryption }, SETTINGS_RECEIVER_ID, secrets),
    enabled: isNew || (stored?.enabled ?? true),
    disabled_reason: isNew ? null : (stored?.disabled_reason ?? null),
    ...(isNew && NO_FAILURES),
    created_at: stored?.created_at ?? now(),
    updated_at: now(),
  })
}
