import type { Config } from '../../../config.ts'
import { type Actor, type AuditLog, audit } from '../../../core/audit/audit.ts'
import type { ClientDeps } from '../../../core/oauth-server/create-client.ts'
import {
  changeOAuthScope,
  countOAuthScopes,
  deleteOAuthScope,
  findOAuthScope,
  insertOAuthScope,
  listOAuthScopes,
  lockOAuthScope,
  lockOAuthScopes,
} from '../../../core/oauth-server/oauth-scopes.store.ts'
import { isScopeName, MAX_SCOPES, type OAuthScope, readScope } from '../../../core/oauth-server/oauth-scopes.ts'
import type { OAuthScopeRow } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'

/** Members of a body, of which the schema has checked the JSON types alone. */
export type GivenScope = { [Member in keyof OAuthScope]?: unknown }

/** A scope with its origin; those of the settings have no times and change with the settings alone. */
export type ShownScope = OAuthScope &
  ({ origin: 'settings' } | { origin: 'admin_api'; created_at: string; updated_at: string })

/** Lists the scopes of the settings, then those of the API by name. A name of the settings hides a row. */
export async function listScopes({ config, db }: ClientDeps): Promise<ShownScope[]> {
  const fromSettings = config.oauthServer.scopes.map((scope) => ({ ...scope, origin: 'settings' as const }))
  const rows = await listOAuthScopes(db)
  return [...fromSettings, ...rows.filter(({ name }) => !ofSettings(config, name)).map(toShown)]
}

export async function findScope({ config, db }: ClientDeps, name: string): Promise<ShownScope> {
  const fromSettings = ofSettings(config, name)
  if (fromSettings) return { ...fromSettings, origin: 'settings' }
  const row = isScopeName(name) ? await findOAuthScope(db, name) : undefined
  return toShown(row ?? noSuchScope())
}

export async function createScope(
  deps: ClientDeps,
  log: AuditLog,
  actor: Actor,
  given: GivenScope,
): Promise<ShownScope> {
  const scope = checked(given)
  if (ofSettings(deps.config, scope.name)) throw taken(scope.name)
  const now = deps.now()
  const row = { ...toRow(scope), created_at: now, updated_at: now }
  await deps.db.transaction().execute(async (trx) => {
    await lockOAuthScopes(trx)
    if (await findOAuthScope(trx, scope.name)) throw taken(scope.name)
    if ((await countOAuthScopes(trx)) >= MAX_SCOPES) throw apiError('over_oauth_scope_quota')
    await insertOAuthScope(trx, row)
    const traits = { scope: scope.name, fields: Object.keys(given) }
    await audit(deps, trx, log, { action: 'oauth_scope_created', actor, traits })
  })
  return toShown(row)
}

/** Changes the given members; the name stays. */
export async function updateScope(
  deps: ClientDeps,
  log: AuditLog,
  actor: Actor,
  { name, given }: { name: string; given: Omit<GivenScope, 'name'> },
): Promise<ShownScope> {
  requireOwn(deps, name)
  if (Object.keys(given).length === 0) {
    throw apiError('validation_failed', { message: 'No fields provided for update' })
  }
  return deps.db.transaction().execute(async (trx) => {
    const before = (await lockOAuthScope(trx, name)) ?? noSuchScope()
    const scope = checked({ ...toShown(before), ...given })
    const after = await changeOAuthScope(trx, { ...toRow(scope), updated_at: deps.now() })
    const traits = { scope: name, fields: Object.keys(given) }
    await audit(deps, trx, log, { action: 'oauth_scope_updated', actor, traits })
    return toShown(after)
  })
}

export async function removeScope(deps: ClientDeps, log: AuditLog, actor: Actor, name: string): Promise<void> {
  requireOwn(deps, name)
  await deps.db.transaction().execute(async (trx) => {
    if (!(await deleteOAuthScope(trx, name))) noSuchScope()
    await audit(deps, trx, log, { action: 'oauth_scope_deleted', actor, traits: { scope: name } })
  })
}

const ofSettings = ({ oauthServer }: Pick<Config, 'oauthServer'>, name: string): OAuthScope | undefined =>
  oauthServer.scopes.find((scope) => scope.name === name)

/** Throws for a name that no row can have, and for one of the settings. */
function requireOwn({ config }: ClientDeps, name: string): void {
  if (!isScopeName(name)) noSuchScope()
  if (!ofSettings(config, name)) return
  throw apiError('validation_failed', { message: `${name} is a scope of OAUTH_SERVER_SCOPES` })
}

function checked(given: GivenScope): OAuthScope {
  try {
    return readScope(given)
  } catch (error) {
    throw apiError('validation_failed', { message: (error as Error).message })
  }
}

function noSuchScope(): never {
  throw apiError('oauth_scope_not_found')
}

const taken = (name: string) => apiError('conflict', { message: `A scope with this name exists already: ${name}` })

const toRow = ({ default: is_default, ...scope }: OAuthScope) => ({ ...scope, is_default })

const toShown = ({ is_default, created_at, updated_at, ...row }: OAuthScopeRow) => ({
  ...row,
  default: is_default,
  origin: 'admin_api' as const,
  created_at: created_at.toISOString(),
  updated_at: updated_at.toISOString(),
})
