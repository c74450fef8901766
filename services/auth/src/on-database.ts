import { randomUUID, randomUUIDv7 } from 'node:crypto'
import { isMissingTable } from '@services/common/database/errors'
import { withDatabase } from '@services/common/database/pool'
import { openReads, type Reads } from '@services/common/database/replica'
import { machineAccount } from '@services/common/process/machine-account'
import { openServiceQueue } from '@services/common/process/service-database'
import type { Actor } from './core/audit/audit.ts'
import { deriveKey } from './core/keys/derive-key.ts'
import { createEncryption } from './core/keys/encryption.ts'
import type { OutboxDeps } from './core/outbox/outbox.ts'
import { recordEvents } from './core/webhooks/record-events.ts'
import { type DB, TABLES } from './db/tables.ts'
import { NIL_UUID } from './db/uuid.ts'
import { type Deps, SCHEMA } from './deps.ts'
import { startUp } from './start.ts'

export type CommandDeps = Pick<Deps, 'config' | 'log' | 'db' | 'now' | 'newRowId' | 'events'> & { operator: Actor }

/**
 * Runs a command on the migrated database; `statementWithinMs` permits slower statements than a request's. One that
 * changes nothing records no events, and reaches the database only where it reads.
 */
export async function onDatabase<Result>(
  work: (deps: CommandDeps) => Promise<Result>,
  { changesNothing = false, ...how }: { statementWithinMs?: number; changesNothing?: boolean } = {},
): Promise<Result> {
  const { config, log } = startUp({ toStderr: true })
  const options = { ...config.database, ...how, applicationName: 'auth cli', log, tables: TABLES }
  return withDatabase<DB, Result>(options, async (db) => {
    const made = { config, log, db, now: () => new Date(), newRowId: (): string => randomUUIDv7() }
    const deps = { ...made, events: recordEvents(made) }
    // A database that is not migrated yet has no receiver.
    const refreshed = changesNothing ? undefined : deps.events.refresh()
    await refreshed?.catch((error) => {
      if (!isMissingTable(error)) throw error
    })
    return work({ ...deps, operator: operator() })
  })
}

/** Runs a command that writes messages: the workers of the service deliver them. */
export const onOutbox = (work: (deps: CommandDeps & OutboxDeps) => Promise<void>): Promise<void> =>
  onDatabase(async (deps) => {
    const { config, log } = deps
    const queue = await openServiceQueue(SCHEMA, config, log, { migrate: false, supervise: false })
    const outboxKey = deriveKey(config.jwt.secret, 'outbox')
    const encryption = createEncryption(config.encryption)
    try {
      await work({ ...deps, queue, outboxKey, encryption, newId: randomUUID, delayMs: () => 0 })
    } finally {
      await queue.stop(1_000)
    }
  })

/** Actor of the commands: `cli`, and as its name the account of this machine. */
const operator = (): Actor => ({
  id: NIL_UUID,
  email: 'cli',
  phone: null,
  user_metadata: { full_name: machineAccount() },
})

/** Runs a command that reads from the replica, if there is one. */
export const onReads = (work: (reads: Reads<DB>, deps: CommandDeps) => Promise<void>): Promise<void> =>
  onDatabase(async (deps) => {
    const { config, log, db } = deps
    const reads = await openReads(db, { ...config.database, applicationName: 'auth cli', log, tables: TABLES })
    await work(reads, deps).finally(() => reads.close())
  })
