import type { Kysely } from 'kysely'
import { userJson } from '../../core/users/users.store.ts'
import type { DB } from '../../db/tables.ts'

export const findUsersAfter = (db: Kysely<DB>, id: string, limit: number) =>
  db
    .selectFrom('users')
    .select(['users.password_hash', userJson])
    .where('users.id', '>', id)
    .where('users.deleted_at', 'is', null)
    .orderBy('users.id')
    .limit(limit)
    .execute()
