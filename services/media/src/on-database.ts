import { randomUUID } from 'node:crypto'
import { withDatabase } from '@services/common/database/pool'
import { createNotifications, type Notifications } from '@services/common/listen/batched-notify'
import { machineAccount } from '@services/common/process/machine-account'
import { CompiledQuery, type Kysely } from 'kysely'
import type { Actor } from './core/audit/audit.ts'
import { type DB, TABLES } from './db/tables.ts'
import { type Deps, resultsChannelOf } from './deps.ts'
import { startUp } from './start.ts'

export type CommandDeps = Pick<Deps, 'config' | 'log' | 'db' | 'newId' | 'now'> & {
  announcements: Notifications
  /** Files that this process has looked up: none. */
  knownFiles: Pick<Deps['knownFiles'], 'evict'>
  /** Account of this machine, which decisions name. */
  operator: string
}

/** Actor of a command (core/audit/audit.ts). */
export const byOperator = ({ operator }: CommandDeps): Actor => ({ origin: 'cli', operator })

/** Runs a command on the migrated database. */
export function onDatabase<Result>(work: (deps: CommandDeps) => Promise<Result>): Promise<Result> {
  const { config, log } = startUp({ toStderr: true })
  return withDatabase(
    { ...config.database, applicationName: 'media cli', log, tables: TABLES },
    async (db: Kysely<DB>) => {
      const announcements = createNotifications({
        ...{ channel: resultsChannelOf(config), mode: config.database.notify, log },
        execute: (text, values) => db.executeQuery(CompiledQuery.raw(text, values)),
      })
      const values = { newId: randomUUID, now: () => new Date(), operator: machineAccount() }
      const result = await work({ config, log, db, announcements, knownFiles: { evict: () => {} }, ...values })
      await announcements.flush()
      return result
    },
  )
}
