import { isDeepStrictEqual } from 'node:util'
import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../../../config.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../../../core/audit/audit.ts'
import { type GivenMetadata, readClientChange, readNewClient } from '../../../core/oauth-server/client-metadata.ts'
import { newClientSecret } from '../../../core/oauth-server/client-secret.ts'
import {
  changeOAuthClient,
  deleteOAuthClient,
  insertOAuthClient,
  lockOAuthClient,
} from '../../../core/oauth-server/oauth-clients.store.ts'
import { listOAuthScopes } from '../../../core/oauth-server/oauth-scopes.store.ts'
import { STANDARD_SCOPES } from '../../../core/oauth-server/oauth-scopes.ts'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'

export interface ManageDeps extends AuditDeps {
  config: Pick<Config, 'auditInDatabase' | 'jwt' | 'oauthServer'>
  db: Kysely<DB>
  newId: () => string
}

/** A client, with its secret where that is new. */
export interface ShownClient {
  client: OAuthClient
  secret?: string
}

/** Registers a client. Its secret is stored as a hash and cannot be read again. */
export async function createClient(
  deps: ManageDeps,
  log: AuditLog,
  actor: Actor,
  given: GivenMetadata,
): Promise<ShownClient> {
  const metadata = readNewClient(given)
  requireMachineRole(deps, metadata)
  const made = hasSecret(metadata) ? newClientSecret() : undefined
  const now = deps.now()
  const client: OAuthClient = {
    ...metadata,
    id: deps.newId(),
    ...{ registration_type: 'manual', metadata_uri: null, metadata_fresh_until: null, metadata_usable_until: null },
    last_used_at: null,
    secret_hash: made?.secret_hash ?? null,
    created_at: now,
    updated_at: now,
  }
  await deps.db.transaction().execute(async (trx) => {
    if (given.scope) await requireScopes(deps, trx, metadata.scope)
    await insertOAuthClient(trx, client)
    const traits = { client_id: client.id, fields: Object.keys(given) }
    await audit(deps, trx, log, { action: 'oauth_client_created', actor, traits })
  })
  return { client, ...(made && { secret: made.secret }) }
}

/** Changes the given members; a method without a secret deletes the secret. */
export async function updateClient(
  deps: ManageDeps,
  log: AuditLog,
  actor: Actor,
  { id, given }: { id: string; given: GivenMetadata },
): Promise<OAuthClient> {
  if (Object.keys(given).length === 0) {
    throw apiError('validation_failed', { message: 'No fields provided for update' })
  }
  return deps.db.transaction().execute(async (trx) => {
    const before = (await lockOAuthClient(trx, id)) ?? noSuchClient()
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
  deps: ManageDeps,
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

export async function removeClient(deps: ManageDeps, log: AuditLog, actor: Actor, id: string): Promise<void> {
  await deps.db.transaction().execute(async (trx) => {
    if (!(await deleteOAuthClient(trx, id))) noSuchClient()
    await audit(deps, trx, log, { action: 'oauth_client_deleted', actor, traits: { client_id: id } })
  })
}

export function noSuchClient(): never {
  throw apiError('oauth_client_not_found')
}

type Method = Pick<OAuthClient, 'token_endpoint_auth_method'>

const hasSecret = ({ token_endpoint_auth_method: method }: Method): boolean =>
  method === 'client_secret_basic' || method === 'client_secret_post'

function requireSecretClient(client: OAuthClient): void {
  if (hasSecret(client)) return
  const kind = client.client_type === 'public' ? 'public client' : 'client of private_key_jwt'
  throw apiError('validation_failed', { message: `Cannot regenerate secret for ${kind}` })
}

/** Refuses roles of administrators: scopes alone give a machine its rights. */
function requireMachineRole({ config }: ManageDeps, { role }: Pick<OAuthClient, 'role'>): void {
  if (!config.jwt.adminRoles.includes(role)) return
  throw apiError('validation_failed', { message: 'role must not be one of AUTH_JWT_ADMIN_ROLES' })
}

/** Refuses names that are no scope. A scope deleted later stays in the registration, without effect. */
async function requireScopes({ config }: ManageDeps, trx: Transaction<DB>, scope: string | null): Promise<void> {
  if (scope === null) return
  const own = [...config.oauthServer.scopes, ...(await listOAuthScopes(trx))].map(({ name }) => name)
  const unknown = scope.split(' ').find((name) => !STANDARD_SCOPES.includes(name) && !own.includes(name))
  if (unknown === undefined) return
  throw apiError('validation_failed', { message: `unknown scope: ${unknown.slice(0, 64)}` })
}
