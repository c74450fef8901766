// Changes that no scope permits, at routes that a scope opens. Without scopes the token is the user's own, or an
// administrator's. Tests: scoped-changes.test.ts.
import type { Metadata } from '../../../db/tables.ts'
import { apiError } from '../../../errors.ts'
import { isAdministrator } from '../../users/is-administrator.ts'
import type { User } from '../../users/users.store.ts'

type Scopes = readonly string[] | undefined

const beyondScopes = (message: string) => apiError('insufficient_scope', { message })

const isGiven = (value: unknown): boolean => value !== undefined && value !== null

/** Permits a client to change the user's free-form data alone. */
export function requireDataAlone(scopes: Scopes, body: object): void {
  if (!scopes || Object.entries(body).every(([name, value]) => name === 'data' || !isGiven(value))) return
  throw beyondScopes('A client can change the data of a user alone')
}

/** Permits a client to create and change users, but to give none of them rights or ways in. */
export function requireNoRights(
  scopes: Scopes,
  body: { role?: string; password?: string; password_hash?: string; app_metadata?: Metadata },
): void {
  const { role, password, password_hash: hash, app_metadata: metadata = {} } = body
  if (!scopes || !([role, password, hash].some(isGiven) || Object.hasOwn(metadata ?? {}, 'role'))) return
  throw beyondScopes('A client cannot set role, password, password_hash or app_metadata.role')
}

/** Permits a client no change of an administrator: a new address would be a way to the rights of one. */
export function requireNoAdministrator(
  scopes: Scopes,
  jwt: { adminRoles: readonly string[]; adminGroup: string },
  user: Pick<User, 'role' | 'app_metadata'>,
): void {
  if (!scopes || !(isAdministrator(jwt, user) || user.role === jwt.adminGroup)) return
  throw beyondScopes('A client cannot change an administrator')
}
