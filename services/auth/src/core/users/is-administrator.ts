import type { User } from './users.store.ts'

/**
 * Reports whether a user has an admin role, in `role` or in `app_metadata`. The latter opens the console; the admin API
 * takes the `role` of a token alone.
 */
export const isAdministrator = (
  { adminRoles }: { adminRoles: readonly string[] },
  { role, app_metadata }: Pick<User, 'role' | 'app_metadata'>,
): boolean => [role, app_metadata.role].some((held) => typeof held === 'string' && adminRoles.includes(held))
