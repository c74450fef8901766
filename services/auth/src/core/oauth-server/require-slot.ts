import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countRegistrations, deleteUnused, lockRegistrations, type Registration } from './registrations.store.ts'

/** Time in which a new client gets its first tokens. Then it makes way: a flood blocks others no longer. */
const UNUSED_MS = 3_600_000

interface SlotDeps {
  config: Pick<Config, 'oauthServer'>
  now: () => Date
}

/**
 * Makes sure that one more client of the kind is within OAUTH_SERVER_MAX_DYNAMIC_CLIENTS; at the limit unused ones are
 * deleted. Throws over_oauth_client_quota. Others wait until the transaction ends.
 */
export async function requireSlot({ config, now }: SlotDeps, trx: Transaction<DB>, kind: Registration): Promise<void> {
  await lockRegistrations(trx, kind)
  const excess = (await countRegistrations(trx, kind)) + 1 - config.oauthServer.maxDynamicClients
  if (excess <= 0) return
  const before = new Date(now().getTime() - UNUSED_MS)
  const deleted = await deleteUnused(trx, { kind, before, limit: excess })
  if (deleted < excess) throw apiError('over_oauth_client_quota', { retryAfterSeconds: UNUSED_MS / 1000 })
}
