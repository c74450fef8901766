import { type Kysely, type Selectable, sql } from 'kysely'
import type { IdentityJson, User } from '../../core/users/users.store.ts'
import type { DB, Metadata } from '../../db/tables.ts'

/** A row as JSON for PostgreSQL: times are ISO 8601. */
export interface UserRow {
  id: string
  aud: string
  role: string
  email: string | null
  phone: string | null
  password_hash: string | null
  email_confirmed_at: string | null
  phone_confirmed_at: string | null
  email_vouched: boolean
  phone_vouched: boolean
  invited_at: string | null
  last_sign_in_at: string | null
  app_metadata: Metadata
  user_metadata: Metadata
  is_anonymous: boolean
  banned_until: string | null
  created_at: string
  updated_at: string
}

/** Without the address, which the database takes from the data. */
export type IdentityRow = Omit<IdentityJson, 'email'>

/** A passkey as JSON for PostgreSQL. */
export type PasskeyRow = Omit<
  Selectable<DB['passkeys']>,
  'public_key' | 'warned_at' | 'last_used_at' | 'created_at'
> & {
  /** Hexadecimal form of bytea. */
  public_key: string
  last_used_at: string | null
  created_at: string
}

export interface ImportedUser {
  line: number
  /** Whether the line gave the id and the time of creation, or they were generated. */
  hasOwnId: boolean
  hasOwnCreatedAt: boolean
  user: UserRow
  identities: IdentityRow[]
  passkeys: PasskeyRow[]
}

const USER_COLUMNS = sql`id, aud, role, email, phone, password_hash, email_confirmed_at, phone_confirmed_at,
  email_vouched, phone_vouched, invited_at, last_sign_in_at, app_metadata, user_metadata, is_anonymous, banned_until,
  created_at, updated_at`
const IDENTITY_COLUMNS = sql`id, user_id, provider, provider_id, identity_data, last_sign_in_at, created_at, updated_at`

const PASSKEY_COLUMNS = sql`id, user_id, credential_id, public_key, friendly_name, attestation, aaguid, sign_count,
  transports, backup_eligible, backed_up, user_verified, last_used_at, created_at`

/**
 * Inserts users, identities and passkeys in one statement and returns the ids of the new ones. Skips a user whose id,
 * address or identity is taken, or a passkey. Throws a unique violation when two users of the batch have one of these
 * in common.
 */
export async function insertUsers(db: Kysely<DB>, users: ImportedUser[]): Promise<Set<string>> {
  const rows = JSON.stringify(users.map(({ user }) => user))
  const identities = JSON.stringify(users.flatMap((each) => each.identities))
  const passkeys = JSON.stringify(users.flatMap((each) => each.passkeys))
  const { rows: inserted } = await sql<{ id: string }>`
    with given_identities as (
      select * from json_populate_recordset(null::${sql.table('identities')}, ${identities}::json)
    ), given_passkeys as (
      select * from json_populate_recordset(null::${sql.table('passkeys')}, ${passkeys}::json)
    ), taken as materialized (
      select given.user_id
      from given_identities given join ${sql.table('identities')} held using (provider, provider_id)
      union all
      select given.user_id from given_passkeys given join ${sql.table('passkeys')} held using (credential_id)
    ), inserted as (
      insert into ${sql.table('users')} (${USER_COLUMNS})
      select ${USER_COLUMNS} from json_populate_recordset(null::${sql.table('users')}, ${rows}::json)
      where id not in (select user_id from taken)
      on conflict do nothing
      returning id
    ), linked as (
      insert into ${sql.table('identities')} (${IDENTITY_COLUMNS})
      select ${IDENTITY_COLUMNS} from given_identities where user_id in (select id from inserted)
    ), keyed as (
      insert into ${sql.table('passkeys')} (${PASSKEY_COLUMNS})
      select ${PASSKEY_COLUMNS} from given_passkeys where user_id in (select id from inserted)
    )
    select id from inserted`.execute(db)
  return new Set(inserted.map(({ id }) => id))
}

export type ExistingUser = Pick<User, 'id' | 'aud' | 'email' | 'phone' | 'created_at'>

export async function findExisting(db: Kysely<DB>, users: ImportedUser[]): Promise<ExistingUser[]> {
  const all = (column: 'id' | 'email' | 'phone') =>
    users.map(({ user }) => user[column]).filter((value) => value !== null)
  return db
    .selectFrom('users')
    .select(['id', 'aud', 'email', 'phone', 'created_at'])
    .where(
      sql<boolean>`id = any (${all('id')}::uuid[]) or email = any (${all('email')}::text[]) or phone = any (${all('phone')}::text[])`,
    )
    .execute()
}
