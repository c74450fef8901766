import type { Kysely } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { apiError } from '../../errors.ts'
import { findUserById, type User } from './users.store.ts'

/**
 * Returns the user of a sign-in for each of its runs. The first has the user as read and checked before. Later ones
 * follow a question to a hook, or a refusal, and rights may be revoked meanwhile: they read and check again. Throws
 * invalid_credentials if the user was deleted.
 */
export function readAgain(user: User, requireMaySignIn: (user: User) => void): (db: Kysely<DB>) => Promise<User> {
  let runs = 0
  return async (db) => {
    if (runs++ === 0) return user
    const current = await findUserById(db, user.id)
    if (!current) throw apiError('invalid_credentials')
    requireMaySignIn(current)
    return current
  }
}
