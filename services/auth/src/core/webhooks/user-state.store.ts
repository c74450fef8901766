import { type Kysely, sql } from 'kysely'
import type { DB } from '../../db/tables.ts'
import { type UserJson, userJson } from '../users/users.store.ts'

export interface PasskeyJson {
  id: string
  friendly_name: string
  created_at: string
}

/** Members of a user that are compared. Sessions, which may be many, are announced as they begin and end. */
export interface UserState {
  user: UserJson
  /** Differs for each password. */
  passwordTag: string | null
  passkeys: PasskeyJson[]
}

export async function readUserStates(db: Kysely<DB>, ids: readonly string[]): Promise<Map<string, UserState>> {
  const rows = await db
    .selectFrom('users')
    .select(userJson)
    .select(sql<string | null>`md5(password_hash)`.as('passwordTag'))
    .select(passkeys.as('passkeys'))
    .where(sql<boolean>`${sql.ref('users.id')} = any (${ids}::uuid[])`)
    .execute()
  return new Map(rows.map((row) => [row.user.id, row]))
}

const passkeys = sql<PasskeyJson[]>`(
  select coalesce(json_agg(json_build_object('id', id, 'friendly_name', friendly_name, 'created_at', created_at)
    order by created_at, id), '[]')
  from ${sql.table('passkeys')} where user_id = ${sql.ref('users.id')})`
