import { sql, type Transaction } from 'kysely'
import type { DB, Metadata } from '../../db/tables.ts'
import { changeUser } from './change-user.store.ts'

/** Sets `app_metadata.provider` to that of the oldest identity, `providers` to all in that order. */
export async function refreshProviders(trx: Transaction<DB>, id: string, now: Date): Promise<void> {
  await sql`
    update ${sql.table('users')} u
    set app_metadata = u.app_metadata || jsonb_build_object('provider', p.providers -> 0, 'providers', p.providers),
        updated_at = ${now}
    from (
      select jsonb_agg(provider order by first_at, provider) as providers
      from (
        select provider, min(created_at) as first_at
        from ${sql.table('identities')} where user_id = ${id} group by provider
      ) each_provider
    ) p
    where u.id = ${id} and p.providers is not null
      and u.app_metadata -> 'providers' is distinct from p.providers`.execute(trx)
}

/** Merges keys at the top level; null removes a key. */
export const mergeUserMetadata = (trx: Transaction<DB>, id: string, data: Metadata, now: Date): Promise<void> =>
  changeUser(trx, id, { user_metadata: merged('user_metadata', data) }, now)

export const mergeAppMetadata = (trx: Transaction<DB>, id: string, data: Metadata, now: Date): Promise<void> =>
  changeUser(trx, id, { app_metadata: merged('app_metadata', data) }, now)

function merged(column: 'user_metadata' | 'app_metadata', data: Metadata) {
  const removed = Object.keys(data).filter((key) => data[key] === null)
  return sql`(${sql.ref(column)} || ${JSON.stringify(data)}::jsonb) - ${removed}::text[]`
}
