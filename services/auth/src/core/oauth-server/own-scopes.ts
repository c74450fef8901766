import type { Kysely } from 'kysely'
import type { Config } from '../../config.ts'
import type { DB } from '../../db/tables.ts'
import { listOAuthScopes } from './oauth-scopes.store.ts'
import type { OAuthScope } from './oauth-scopes.ts'

export interface ScopeDeps {
  config: Pick<Config, 'oauthServer'>
  db: Kysely<DB>
}

/** Lists the scopes of the operator: those of the settings, which hide rows of the same name, then the others. */
export async function listOwnScopes({ config: { oauthServer }, db }: ScopeDeps): Promise<OAuthScope[]> {
  const rows = await listOAuthScopes(db)
  const others = rows.filter(({ name }) => !oauthServer.scopes.some((scope) => scope.name === name))
  return [
    ...oauthServer.scopes,
    ...others.map(({ name, description, descriptions, claims, is_default }) => ({
      ...{ name, description, descriptions, claims, default: is_default },
    })),
  ]
}
