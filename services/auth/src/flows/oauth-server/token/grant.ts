import type { AuditLog } from '../../../core/audit/audit.ts'
import type { TokenAnswer } from '../../../core/oauth-server/tokens/issue-client-tokens.ts'
import type { Client } from '../../../core/sessions/start-session.ts'
import type { OAuthClient } from '../../../db/tables.ts'
import type { Deps } from '../../../deps.ts'
import { oauthError } from '../../../oauth-errors.ts'

/** A request at the token endpoint, whose client is authenticated. */
export interface GrantRequest {
  deps: Deps
  log: AuditLog
  client: OAuthClient
  /** Program that sends it. */
  origin: Client
  /** Key that the client has proven to have (RFC 9449); null: none. */
  thumbprint: string | null
}

export type Grant<Fields> = (request: GrantRequest, fields: Fields) => Promise<TokenAnswer>

/** Key that refresh tokens are bound to: those of confidential clients are bound by their authentication. */
export const boundKey = ({ client, thumbprint }: GrantRequest): string | null =>
  client.client_type === 'public' ? thumbprint : null

/** Returns the requested resources, all granted ones where none is requested. Throws invalid_target. */
export function narrowedResources(granted: readonly string[], requested: readonly string[]): readonly string[] {
  const other = requested.find((resource) => !granted.includes(resource))
  if (other !== undefined) throw oauthError('invalid_target', { message: 'A resource was not granted' })
  return requested.length > 0 ? requested : granted
}

/** Returns the requested scopes, all granted ones where none is requested. Throws invalid_scope. */
export function narrowedScopes(granted: readonly string[], requested: readonly string[]): readonly string[] {
  const other = requested.find((scope) => !granted.includes(scope))
  if (other !== undefined) throw oauthError('invalid_scope', { message: 'A scope was not granted' })
  return requested.length > 0 ? requested : granted
}
