// Clients whose id is the address of their metadata document. The rule: the row serves all replicas while the
// document's Cache-Control lets it. A failed fetch ends no client in use for a day.

import type { Egress } from '@services/common/egress/egress'
import { regardlessOfDeadline } from '@services/common/request-deadline'
import type { Kysely } from 'kysely'
import { describeFailure } from '../../../adapters/oauth/upstream.ts'
import type { Config } from '../../../config.ts'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { requireSlot } from '../require-slot.ts'
import { findDocumentClient, insertDocumentClient, renewDocumentClient } from './client-documents.store.ts'
import { fetchDocument } from './fetch-document.ts'
import { isDocumentAddress, readDocument } from './read-document.ts'

/** Bounds on the lifetime that a document names, and the one of a document that names none. */
const SHORTEST_SECONDS = 60
const LONGEST_SECONDS = 86_400
const USUAL_SECONDS = 3_600

/** Time in which a client outlives a document that cannot be fetched. */
const OUTLIVES_MS = 86_400_000

/** Shortest time between a failed fetch and the next: anyone can name an address. */
const PAUSE_MS = 30_000

/** Fetches in memory, which run or have failed; the oldest is forgotten. */
const MAX_KEPT = 1_000

interface Fetch {
  client: Promise<OAuthClient>
  /** Start, in milliseconds since 1970. */
  at: number
}

/** Fetches by address, of one process. */
export type ClientDocuments = Map<string, Fetch>

export interface DocumentDeps {
  config: Pick<Config, 'oauthServer'>
  db: Kysely<DB>
  clientEgress: Pick<Egress, 'fetch'>
  now: () => Date
  newId: () => string
  log: { info(fields: object, message: string): void }
  clientDocuments: ClientDocuments
}

/** Finds the client of a document, which is fetched if its row is absent or too old; undefined if there is none. */
export async function findByDocument(deps: DocumentDeps, address: string): Promise<OAuthClient | undefined> {
  if (!deps.config.oauthServer.metadataDocuments || !isDocumentAddress(address)) return undefined
  const kept = await findDocumentClient(deps.db, address)
  const now = deps.now()
  if (kept && isBefore(now, kept.metadata_fresh_until)) return kept
  try {
    return await fetchOnce(deps, address)
  } catch (error) {
    deps.log.info({ clientId: address, reason: describeFailure(error) }, 'metadata document of a client not used')
    return kept && isBefore(now, kept.metadata_usable_until) ? kept : undefined
  }
}

const isBefore = (now: Date, end: Date | null) => end !== null && now < end

/** Shares a running fetch, and a failure for the pause. */
function fetchOnce(deps: DocumentDeps, address: string): Promise<OAuthClient> {
  const { clientDocuments: fetches } = deps
  const at = deps.now().getTime()
  const known = fetches.get(address)
  if (known && at - known.at < PAUSE_MS) return known.client
  // Many requests wait for it, so it ends with none of them.
  const client = regardlessOfDeadline(() => renew(deps, address))
  fetches.delete(address)
  fetches.set(address, { client, at })
  const [oldest] = fetches.keys()
  if (fetches.size > MAX_KEPT && oldest !== undefined) fetches.delete(oldest)
  client.then(
    () => fetches.delete(address),
    () => {},
  )
  return client
}

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
    await requireSlot(deps, trx, 'metadata_document')
    return insertDocumentClient(trx, client, renewal)
  })
}

function lifetimeSeconds(cacheControl: string): number {
  if (/\b(no-store|no-cache)\b/i.test(cacheControl)) return SHORTEST_SECONDS
  const [, given = USUAL_SECONDS] = /\bmax-age="?(\d{1,9})/i.exec(cacheControl) ?? []
  return Math.min(Math.max(Number(given), SHORTEST_SECONDS), LONGEST_SECONDS)
}
