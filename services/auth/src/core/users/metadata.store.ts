import { sql, type Transaction } from 'kysely'
import type { DB, Metadata } from '../../db/tables.ts'

/** `app_metadata.provider` is the oldest identity's, `providers` all of them in that order. */
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

/** Keys are merged at the top level; a key given as null is removed, others stay. */
export const mergeUserMetadata = (trx: Transaction<DB>, id: string, data: Metadata, now: Date): Promise<void> =>
  merge(trx, id, 'user_metadata', data, now)

/** The same for what only admins and the inherited admin group may write. */
export const mergeAppMetadata = (trx: Transaction<DB>, id: string, data: Metadata, now: Date): Promise<void> =>
  merge(trx, id, 'app_metadata', data, now)

async function merge(
  trx: Transaction<DB>,
  id: string,
  column: 'user_metadata' | 'app_metadata',
  data: Metadata,
  now: Date,
): Promise<void> {
  const removed = Object.keys(data).filter((key) => data[key] === null)
  await trx
    .updateTable('users')
    .set({
      [column]: sql`(${sql.ref(column)} || ${JSON.stringify(data)}::jsonb) - ${removed}::text[]`,
      updated_at: now,
    })
    .where('id', '=', id)
    .execute()
}
