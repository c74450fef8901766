import type { Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { countRegistrations, deleteUnused, lockRegistrations, type Registrations } from './registrations.store.ts'

/** Time in which a new client gets its first tokens. Then it makes way: a flood blocks others no longer. */
const UNUSED_MS = 3_600_000

interface SlotDeps {
  config: Pick<Config, 'oauthServer'>
  now: () => Date
}

/** Share of one host in all metadata documents: its owner can name any number of them. */
const SHARE_OF_HOST = 0.1

/**
 * Makes sure that one more client of the kind is within OAUTH_SERVER_MAX_DYNAMIC_CLIENTS, and within its host's share;
 * at the limit unused ones are deleted. Throws over_oauth_client_quota. Others wait until the transaction ends.
 */
export async function requireSlot(deps: SlotDeps, trx: Transaction<DB>, { kind, host }: Registrations): Promise<void> {
  const { maxDynamicClients: max } = deps.config.oauthServer
  await lockRegistrations(trx, kind)
  if (host !== undefined) await makeSlot(deps, trx, { kind, host }, Math.ceil(max * SHARE_OF_HOST))
  await makeSlot(deps, trx, { kind }, max)
}

async function makeSlot({ now }: SlotDeps, trx: Transaction<DB>, all: Registrations, max: number): Promise<void> {
  const excess = (await countRegistrations(trx, all)) + 1 - max
  if (excess <= 0) return
  const before = new Date(now().getTime() - UNUSED_MS)
  const deleted = await deleteUnused(trx, all, { before, limit: excess })
  if (deleted < excess) throw apiError('over_oauth_client_quota', { retryAfterSeconds: UNUSED_MS / 1000 })
}
