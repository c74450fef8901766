// Scopes: the rights of a token. Each group of routes names the scope that it needs (http/authenticate.ts).
import type { Scope } from '../../db/tables.ts'

export const ALL_SCOPES = ['write', 'read', 'delete', 'admin'] as const satisfies readonly Scope[]

/** Scopes of a token that names none. */
export const USUAL_SCOPES: Scope[] = ['write', 'read', 'delete']

/** Whether a token with these scopes may do what needs `scope`; `admin` may do everything. */
export const allows = ({ scopes }: { scopes: readonly Scope[] }, scope: Scope): boolean =>
  scopes.includes(scope) || scopes.includes('admin')

/** Whether a clip or an album is the token's own; admins have all. */
export const owns = (
  token: { id: string; scopes: readonly Scope[] },
  { tokenId }: { tokenId: string | null },
): boolean => tokenId === token.id || allows(token, 'admin')
