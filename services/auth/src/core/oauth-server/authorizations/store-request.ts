import type { Kysely } from 'kysely'
import type { DB } from '../../../db/tables.ts'
import type { RandomBytes } from '../../one-time-tokens/one-time-token.ts'
import { newRequestId } from './authorization-code.ts'
import { insertAuthorization } from './authorizations.store.ts'
import type { ReadRequest, RequestTarget } from './read-request.ts'

/** Beginning of the names of pushed requests (RFC 9126, section 2.2). */
export const REQUEST_URI = 'urn:ietf:params:oauth:request_uri:'

/** Stores a request for some seconds; returns its id. */
export async function storeRequest(
  { db, now, random }: { db: Kysely<DB>; now: () => Date; random: RandomBytes },
  { client, redirectUri }: RequestTarget,
  read: ReadRequest,
  { status, seconds }: { status: 'pending' | 'pushed'; seconds: number },
): Promise<string> {
  const id = newRequestId(random)
  const created_at = now()
  const expires_at = new Date(created_at.getTime() + seconds * 1000)
  await insertAuthorization(db, {
    ...read,
    id,
    client_id: client.id,
    redirect_uri: redirectUri,
    status,
    expires_at,
    created_at,
  })
  return id
}
