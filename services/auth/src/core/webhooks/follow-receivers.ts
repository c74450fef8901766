// Reads for this process what receivers of events want: at its start, when any process has changed one, and each
// minute. The settings' receiver is stored by the first look that can.
import type { NotifyMode } from '@services/common/database/settings'
import type { Queue } from '@services/common/queue/queue'
import type { Logger } from '@services/common/telemetry/logger'
import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import type { Encryption } from '../keys/encryption.ts'
import type { EventRecorder } from './record-events.ts'
import { storeSettingsReceiver } from './settings-receiver.ts'
import { RECEIVERS } from './webhooks.store.ts'

/** Intervals of looks: notifications may be lost, or not be wanted. */
const LOOK_EVERY_MS: Record<NotifyMode, number> = { batched: 60_000, each: 60_000, none: 5_000 }

interface Deps {
  db: Kysely<DB>
  now: () => Date
  log: Logger
  encryption: Encryption
  config: Pick<Config, 'webhooks' | 'database'>
  events: EventRecorder
  queue: Queue
}

/** Looks a first time, and then until the returned function is called; without `polls` only when there is a reason. */
export async function followReceivers(deps: Deps, { polls }: { polls: boolean }): Promise<() => Promise<void>> {
  const { config, events, log, queue } = deps
  let isStored = false
  let isAsked = false
  let looking: Promise<void> | undefined

  const look = async () => {
    isAsked = false
    try {
      if (!isStored) await storeSettingsReceiver(deps)
      isStored = true
    } catch (err) {
      log.error({ err }, 'AUTH_WEBHOOK_URL not stored, will retry')
    }
    await events.refresh()
  }
  const lookSoon = () => {
    isAsked = true
    looking ??= look()
      .catch((err) => log.warn({ err }, 'receivers of events not read, will retry'))
      .finally(() => {
        looking = undefined
        if (isAsked) lookSoon()
      })
  }
  const forget = queue.onAnnouncement(RECEIVERS, lookSoon)
  const timer = polls ? setInterval(lookSoon, LOOK_EVERY_MS[config.database.notify]).unref() : undefined
  const stop = async () => {
    forget()
    clearInterval(timer)
    await looking
  }
  try {
    await look()
  } catch (error) {
    await stop()
    throw error
  }
  return stop
}
