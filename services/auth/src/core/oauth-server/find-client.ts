// Clients by the id that requests name. The rule: the service's own rows and claims of sessions hold the row's UUID;
// everything that a client sees holds its public id.
import type { Kysely } from 'kysely'
import type { DB, OAuthClient } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import { findOAuthClient } from './oauth-clients.store.ts'

export interface FindClientDeps {
  db: Kysely<DB>
}

/** Finds a client by its public id; undefined if there is none. */
export async function findClient(deps: FindClientDeps, clientId: string): Promise<OAuthClient | undefined> {
  return UUID.test(clientId) ? findOAuthClient(deps.db, clientId) : undefined
}

/** Returns the id that a client is known by: the address of its metadata document, or the row's UUID. */
export const publicIdOf = ({ id, metadata_uri }: Pick<OAuthClient, 'id' | 'metadata_uri'>): string => metadata_uri ?? id
