// Second factors. `users.factors` mirrors this table and recovery_codes, so every change of either ends with
// `showFactors`, with the user's row locked.
//
// | Status | Reached by | Left by |
// | --- | --- | --- |
// | unverified | insertFactor | proof, removal; a proof of another factor of its type; housekeeping |
// | verified | the first proof (flows/mfa/) | removal (remove-factor.ts) |
//
// Tests: flows/mfa/*.test.ts, flows/admin/users/factors.test.ts.
import { jsonb } from '@services/common/database/pool'
import { type Insertable, type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { DB, FactorJson, FactorType, StoredCredential } from '../../db/tables.ts'

/** Name of a set of recovery codes without one, as the client documents it. */
export const USUAL_NAME = 'Recovery codes'

export type Factor = Selectable<DB['factors']>

export async function insertFactor(trx: Transaction<DB>, factor: Insertable<DB['factors']>): Promise<void> {
  await trx.insertInto('factors').values(factor).execute()
  await showFactors(trx, [factor.user_id])
}

export function findFactor(db: Kysely<DB>, userId: string, id: string): Promise<Factor | undefined> {
  return db.selectFrom('factors').selectAll().where('id', '=', id).where('user_id', '=', userId).executeTakeFirst()
}

/** Oldest first. */
export function listFactors(db: Kysely<DB>, userId: string): Promise<Factor[]> {
  return db
    .selectFrom('factors')
    .selectAll()
    .where('user_id', '=', userId)
    .orderBy('created_at')
    .orderBy('id')
    .execute()
}

export async function deleteFactors(trx: Transaction<DB>, userId: string, ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  await trx.deleteFrom('factors').where('user_id', '=', userId).where('id', 'in', ids).execute()
  await showFactors(trx, [userId])
}

/** Deletes unproven factors of a type: a stranger may have begun them. */
export async function deleteUnverified(trx: Transaction<DB>, userId: string, type: FactorType): Promise<void> {
  const { numDeletedRows } = await trx
    .deleteFrom('factors')
    .where('user_id', '=', userId)
    .where('factor_type', '=', type)
    .where('status', '=', 'unverified')
    .executeTakeFirstOrThrow()
  if (numDeletedRows > 0n) await showFactors(trx, [userId])
}

export async function deleteAllFactors(trx: Transaction<DB>, userId: string): Promise<void> {
  await trx.deleteFrom('factors').where('user_id', '=', userId).execute()
  await showFactors(trx, [userId])
}

export interface FactorChanges {
  status?: 'verified'
  friendly_name?: string
  phone?: string
  last_challenged_at?: Date
}

export async function changeFactor(trx: Transaction<DB>, factor: Factor, changes: FactorChanges, now: Date) {
  await trx
    .updateTable('factors')
    .set({ ...changes, updated_at: now })
    .where('id', '=', factor.id)
    .execute()
  await showFactors(trx, [factor.user_id])
}

/**
 * Stores a factor's first credential; false if it has one, which an answer to an older challenge must not replace.
 * Throws a unique violation if any factor has this credential.
 */
export async function setCredential(trx: Transaction<DB>, factor: Factor, key: StoredCredential): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('factors')
    .set({ credential_id: key.id, credential: jsonb(key) as never })
    .where('id', '=', factor.id)
    .where('credential_id', 'is', null)
    .executeTakeFirstOrThrow()
  if (numUpdatedRows === 0n) return false
  await showFactors(trx, [factor.user_id])
  return true
}

/** Stores the credential's new counter; false if another answer of the key was first. */
export async function advanceCredential(
  trx: Transaction<DB>,
  factor: Factor,
  before: StoredCredential,
  after: StoredCredential,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('factors')
    .set({ credential: jsonb(after) as never })
    .where('id', '=', factor.id)
    .where(sql<boolean>`credential = ${JSON.stringify(before)}::jsonb`)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n
}

/** Updates `users.factors` from the tables. It locks the users' rows: concurrent changes wait. */
export async function showFactors(trx: Transaction<DB>, userIds: readonly string[]): Promise<void> {
  const factors = sql<FactorJson[] | null>`(
    select jsonb_agg(jsonb_build_object(
      'id', id, 'factor_type', factor_type, 'status', status, 'friendly_name', friendly_name, 'phone', phone,
      'aaguid', credential ->> 'aaguid', 'last_challenged_at', last_challenged_at,
      'created_at', created_at, 'updated_at', updated_at) order by created_at, factor_type = 'recovery_code', id)
    from (
      select id, factor_type, status, friendly_name, phone, credential, last_challenged_at, created_at, updated_at
      from ${sql.table('factors')} where user_id = ${sql.ref('users.id')}
      union all
      (select set_id, 'recovery_code', 'verified', coalesce(friendly_name, ${USUAL_NAME}), null, null, null, created_at, created_at
      from ${sql.table('recovery_codes')} where user_id = ${sql.ref('users.id')} limit 1)
    ) shown)`
  await trx.updateTable('users').set({ factors }).where('id', 'in', userIds).execute()
}

/** Housekeeping: unproven factors without a recent challenge. It locks users first, as every flow does. */
export async function deleteStaleFactors(db: Kysely<DB>, before: Date, limit: number): Promise<number> {
  return db.transaction().execute(async (trx) => {
    const isStale = sql<boolean>`status = 'unverified' and created_at < ${before}
      and (last_challenged_at is null or last_challenged_at < ${before})`
    const stale = trx.selectFrom('factors').select('user_id').where(isStale)
    const users = await trx
      .selectFrom('users')
      .select('id')
      .where('id', 'in', stale.limit(limit))
      .forUpdate()
      .skipLocked()
      .execute()
    if (users.length === 0) return 0
    const ids = users.map(({ id }) => id)
    const deleted = await trx.deleteFrom('factors').where('user_id', 'in', ids).where(isStale).executeTakeFirst()
    await showFactors(trx, ids)
    return Number(deleted.numDeletedRows)
  })
}
