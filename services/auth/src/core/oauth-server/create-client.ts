import type { Kysely, Transaction } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB, OAuthClient } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { type Actor, type AuditDeps, type AuditLog, audit } from '../audit/audit.ts'
import { type GivenMetadata, readNewClient } from './client-metadata.ts'
import { newClientSecret } from './client-secret.ts'
import { insertOAuthClient } from './oauth-clients.store.ts'
import { listOAuthScopes } from './oauth-scopes.store.ts'
import { STANDARD_SCOPES } from './oauth-scopes.ts'
import { requireSlot } from './require-slot.ts'

export interface ClientDeps extends AuditDeps {
  config: Pick<Config, 'auditInDatabase' | 'jwt' | 'oauthServer'>
  db: Kysely<DB>
  newId: () => string
}

/** A client, with its secret where that is new. */
export interface ShownClient {
  client: OAuthClient
  secret?: string
}

/** Registers a client. Its secret is stored as a hash and cannot be read again. Dynamic registrations are bounded. */
export async function createClient(
  deps: ClientDeps,
  log: AuditLog,
  actor: Actor,
  given: GivenMetadata,
  registration_type: 'manual' | 'dynamic' = 'manual',
): Promise<ShownClient> {
  const metadata = readNewClient(given)
  requireMachineRole(deps, metadata)
  const made = hasSecret(metadata) ? newClientSecret() : undefined
  const now = deps.now()
  const client: OAuthClient = {
    ...metadata,
    id: deps.newId(),
    ...{ registration_type, metadata_uri: null, metadata_fresh_until: null, metadata_usable_until: null },
    last_used_at: null,
    secret_hash: made?.secret_hash ?? null,
    created_at: now,
    updated_at: now,
  }
  await deps.db.transaction().execute(async (trx) => {
    if (registration_type === 'dynamic') await requireSlot(deps, trx, { kind: registration_type })
    if (given.scope) await requireScopes(deps, trx, metadata.scope)
    await insertOAuthClient(trx, client)
    const traits = { client_id: client.id, kind: registration_type, fields: Object.keys(given) }
    await audit(deps, trx, log, { action: 'oauth_client_created', actor, traits })
  })
  return { client, ...(made && { secret: made.secret }) }
}

type Method = Pick<OAuthClient, 'token_endpoint_auth_method'>

export const hasSecret = ({ token_endpoint_auth_method: method }: Method): boolean =>
  method === 'client_secret_basic' || method === 'client_secret_post'

/** Refuses roles of administrators: scopes alone give a machine its rights. */
export function requireMachineRole({ config }: ClientDeps, { role }: Pick<OAuthClient, 'role'>): void {
  if (!config.jwt.adminRoles.includes(role)) return
  throw apiError('validation_failed', { message: 'role must not be one of AUTH_JWT_ADMIN_ROLES' })
}

/** Refuses names that are no scope. A scope deleted later stays in the registration, without effect. */
export async function requireScopes({ config }: ClientDeps, trx: Transaction<DB>, scope: string | null): Promise<void> {
  if (scope === null) return
  const own = [...config.oauthServer.scopes, ...(await listOAuthScopes(trx))].map(({ name }) => name)
  const unknown = scope.split(' ').find((name) => !STANDARD_SCOPES.includes(name) && !own.includes(name))
  if (unknown === undefined) return
  throw apiError('validation_failed', { message: `unknown scope: ${unknown.slice(0, 64)}` })
}
