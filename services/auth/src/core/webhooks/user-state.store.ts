import { type Kysely, sql } from 'kysely'
import type { Aal, DB } from '../../db/tables.ts'
import { type UserJson, userJson } from '../users/users.store.ts'

/** A session as events show it; times are text. */
export interface SessionJson {
  id: string
  created_at: string
  aal: Aal
  methods: string[]
  user_agent: string | null
  ip: string | null
}

export interface PasskeyJson {
  id: string
  friendly_name: string
  created_at: string
}

/** A user with everything that events report. */
export interface UserState {
  user: UserJson
  /** Differs for each password. */
  passwordTag: string | null
  sessions: SessionJson[]
  passkeys: PasskeyJson[]
}

export async function readUserStates(db: Kysely<DB>, ids: readonly string[]): Promise<Map<string, UserState>> {
  const rows = await db
    .selectFrom('users')
    .select(userJson)
    .select(sql<string | null>`md5(password_hash)`.as('passwordTag'))
    .select(sessions.as('sessions'))
    .select(passkeys.as('passkeys'))
    .where(sql<boolean>`${sql.ref('users.id')} = any (${ids}::uuid[])`)
    .execute()
  return new Map(rows.map((row) => [row.user.id, row]))
}

const sessions = sql<SessionJson[]>`(
  select coalesce(json_agg(json_build_object('id', id, 'created_at', created_at, 'aal', aal,
    'methods', (select json_agg(entry ->> 'method') from jsonb_array_elements(amr) entry),
    'user_agent', user_agent, 'ip', host(ip)) order by created_at, id), '[]')
  from ${sql.table('sessions')} where user_id = ${sql.ref('users.id')})`

const passkeys = sql<PasskeyJson[]>`(
  select coalesce(json_agg(json_build_object('id', id, 'friendly_name', friendly_name, 'created_at', created_at)
    order by created_at, id), '[]')
  from ${sql.table('passkeys')} where user_id = ${sql.ref('users.id')})`
