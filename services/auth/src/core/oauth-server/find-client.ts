// Clients by the id that requests name. The rule: the service's own rows and claims of sessions hold the row's UUID;
// everything that a client sees holds its public id.
import type { OAuthClient } from '../../db/tables.ts'
import { UUID } from '../../db/uuid.ts'
import { type DocumentDeps, findByDocument } from './documents/client-documents.ts'

export interface FindClientDeps extends DocumentDeps {
  findOAuthClient: (id: string) => Promise<OAuthClient | undefined>
}

/**
 * Finds a client by its public id; undefined if there is none. It may fetch the client's document; `countUnknown` runs
 * before that of an unknown one.
 */
export async function findClient(
  deps: FindClientDeps,
  clientId: string,
  countUnknown?: () => Promise<void>,
): Promise<OAuthClient | undefined> {
  if (!UUID.test(clientId)) return findByDocument(deps, clientId, countUnknown)
  const client = await deps.findOAuthClient(clientId)
  return client?.registration_type === 'metadata_document' ? undefined : client
}

/** Returns the id that a client is known by: the address of its metadata document, or the row's UUID. */
export const publicIdOf = ({ id, metadata_uri }: Pick<OAuthClient, 'id' | 'metadata_uri'>): string => metadata_uri ?? id

/** Returns the host that vouches for the client of a metadata document. */
export const hostOf = (metadataUri: string): string => new URL(metadataUri).host
