// Clients whose id is the address of their metadata document. The rule: the row serves all replicas while the
// document's Cache-Control lets it. A failed fetch ends no client in use for a day.

import type { Egress } from '@services/common/egress/egress'
import type { Kysely } from 'kysely'
import { describeFailure } from '../../../adapters/oauth/upstream.ts'
import type { Config } from '../../../config.ts'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { requireSlot } from '../require-slot.ts'
import { findDocumentClient, insertDocumentClient, renewDocumentClient } from './client-documents.store.ts'
import { fetchDocument } from './fetch-document.ts'
import { isDocumentAddress, readDocument } from './read-document.ts'
import { SharedFetches } from './shared-fetches.ts'

/** Bounds on the lifetime that a document names, and the one of a document that names none. */
const SHORTEST_SECONDS = 60
const LONGEST_SECONDS = 86_400
const USUAL_SECONDS = 3_600

/** Time in which a client outlives a document that cannot be fetched. */
const OUTLIVES_MS = 86_400_000

/** Running and failed fetches by address, of one process. */
export type ClientDocuments = SharedFetches<OAuthClient>

export const createClientDocuments = (): ClientDocuments => new SharedFetches(1_000)

export interface DocumentDeps {
  config: Pick<Config, 'oauthServer'>
  db: Kysely<DB>
  clientEgress: Pick<Egress, 'fetch'>
  now: () => Date
  newId: () => string
  log: { info(fields: object, message: string): void }
  clientDocuments: ClientDocuments
}

/**
 * Finds the client of a document, which is fetched if its row is absent or too old; undefined if there is none.
 * `countUnknown` runs before an address without a row is requested.
 */
export async function findByDocument(
  deps: DocumentDeps,
  address: string,
  countUnknown?: () => Promise<void>,
): Promise<OAuthClient | undefined> {
  if (!deps.config.oauthServer.metadataDocuments || !isDocumentAddress(address)) return undefined
  const kept = await findDocumentClient(deps.db, address)
  const now = deps.now()
  if (kept && isBefore(now, kept.metadata_fresh_until)) return kept
  if (!kept) await countUnknown?.()
  try {
    // The row keeps what was fetched. A request that looked before it was there would fetch again, so each looks twice.
    return await deps.clientDocuments.get(address, { now, maxAgeMs: 0 }, async () => {
      const stored = await findDocumentClient(deps.db, address)
      return stored && isBefore(now, stored.metadata_fresh_until) ? stored : renew(deps, address)
    })
  } catch (error) {
    deps.log.info({ clientId: address, reason: describeFailure(error) }, 'metadata document of a client not used')
    return kept && isBefore(now, kept.metadata_usable_until) ? kept : undefined
  }
}

const isBefore = (now: Date, end: Date | null) => end !== null && now < end

async function renew(deps: DocumentDeps, address: string): Promise<OAuthClient> {
  const { db, clientEgress } = deps
  const { json, headers } = await fetchDocument(clientEgress, address)
  const metadata = readDocument(address, json)
  const now = deps.now()
  const freshUntil = new Date(now.getTime() + lifetimeSeconds(headers.get('cache-control') ?? '') * 1000)
  const renewal = {
    ...metadata,
    metadata_fresh_until: freshUntil,
    metadata_usable_until: new Date(freshUntil.getTime() + OUTLIVES_MS),
    updated_at: now,
  }
  const renewed = await renewDocumentClient(db, address, renewal)
  if (renewed) return renewed
  const ids = { id: deps.newId(), registration_type: 'metadata_document', metadata_uri: address } as const
  const client = { ...renewal, ...ids, secret_hash: null, last_used_at: null, created_at: now }
  return db.transaction().execute(async (trx) => {
    await requireSlot(deps, trx, { kind: 'metadata_document', host: new URL(address).hostname })
    return insertDocumentClient(trx, client, renewal)
  })
}

function lifetimeSeconds(cacheControl: string): number {
  if (/\b(no-store|no-cache)\b/i.test(cacheControl)) return SHORTEST_SECONDS
  const [, given = USUAL_SECONDS] = /\bmax-age="?(\d{1,9})/i.exec(cacheControl) ?? []
  return Math.min(Math.max(Number(given), SHORTEST_SECONDS), LONGEST_SECONDS)
}
