import { isDeepStrictEqual } from 'node:util'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { type GivenMetadata, readClientChange } from '../../../core/oauth-server/client-metadata.ts'
import { newClientSecret } from '../../../core/oauth-server/client-secret.ts'
import {
  type ClientDeps,
  hasSecret,
  requireMachineRole,
  requireScopes,
  type ShownClient,
} from '../../../core/oauth-server/create-client.ts'
import {
  changeOAuthClient,
  deleteOAuthClient,
  lockOAuthClient,
} from '../../../core/oauth-server/oauth-clients.store.ts'
import { endSessionsOfClients } from '../../../core/oauth-server/tokens/client-sessions.store.ts'
import type { OAuthClient } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'

/** Changes the given members; a method without a secret deletes the secret. */
export async function updateClient(
  deps: ClientDeps,
  log: AuditLog,
  actor: Actor,
  { id, given }: { id: string; given: GivenMetadata },
): Promise<OAuthClient> {
  if (Object.keys(given).length === 0) {
    throw apiError('validation_failed', { message: 'No fields provided for update' })
  }
  return deps.db.transaction().execute(async (trx) => {
    const before = (await lockOAuthClient(trx, id)) ?? noSuchClient()
    if (before.registration_type === 'metadata_document') {
      throw apiError('validation_failed', { message: 'The client changes with its metadata document' })
    }
    if (given.client_type !== undefined && given.client_type !== before.client_type) {
      throw apiError('validation_failed', { message: 'client_type cannot change' })
    }
    const metadata = readClientChange(before, given)
    requireMachineRole(deps, metadata)
    const changed = (Object.keys(given) as (keyof GivenMetadata)[]).filter(
      (name) => !isDeepStrictEqual(metadata[name], before[name]),
    )
    if (changed.length === 0) return before
    if (changed.includes('scope')) await requireScopes(deps, trx, metadata.scope)
    const secret_hash = hasSecret(metadata) ? before.secret_hash : null
    const { client_type: _, ...columns } = metadata
    const after = await changeOAuthClient(trx, id, { ...columns, secret_hash, updated_at: deps.now() })
    await audit(deps, trx, log, {
      ...{ action: 'oauth_client_updated', actor, traits: { client_id: id, fields: changed } },
    })
    return after
  })
}

/** Replaces the secret; the earlier one is worth nothing from then on. */
export async function regenerateSecret(
  deps: ClientDeps,
  log: AuditLog,
  actor: Actor,
  id: string,
): Promise<ShownClient> {
  const { secret, secret_hash } = newClientSecret()
  const client = await deps.db.transaction().execute(async (trx) => {
    const before = (await lockOAuthClient(trx, id)) ?? noSuchClient()
    requireSecretClient(before)
    const after = await changeOAuthClient(trx, id, { secret_hash, updated_at: deps.now() })
    await audit(deps, trx, log, { action: 'oauth_client_secret_rotated', actor, traits: { client_id: id } })
    return after
  })
  return { client, secret }
}

export async function removeClient(deps: ClientDeps, log: AuditLog, actor: Actor, id: string): Promise<void> {
  await endSessionsOfClients(deps.db, [id], 'ended_by_admin')
  await deps.db.transaction().execute(async (trx) => {
    if (!(await deleteOAuthClient(trx, id))) noSuchClient()
    await audit(deps, trx, log, { action: 'oauth_client_deleted', actor, traits: { client_id: id } })
  })
}

export function noSuchClient(): never {
  throw apiError('oauth_client_not_found')
}

function requireSecretClient(client: OAuthClient): void {
  if (hasSecret(client)) return
  const kind = client.client_type === 'public' ? 'public client' : 'client of private_key_jwt'
  throw apiError('validation_failed', { message: `Cannot regenerate secret for ${kind}` })
}
