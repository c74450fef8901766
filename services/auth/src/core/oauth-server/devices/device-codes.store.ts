import { type Kysely, type Selectable, sql, type Transaction } from 'kysely'
import type { Aal, DB } from '../../../db/tables.ts'

export type DeviceCode = Selectable<DB['oauth_device_codes']>

export type NewDeviceCode = Pick<
  DeviceCode,
  | 'id'
  | 'device_code_hash'
  | 'user_code'
  | 'client_id'
  | 'scopes'
  | 'resources'
  | 'user_agent'
  | 'ip'
  | 'interval_seconds'
  | 'expires_at'
  | 'created_at'
>

/** False if another device has the user code. */
export async function insertDeviceCode(db: Kysely<DB>, device: NewDeviceCode): Promise<boolean> {
  const inserted = await db
    .insertInto('oauth_device_codes')
    .values({
      ...device,
      ...{ scopes: JSON.stringify(device.scopes), resources: JSON.stringify(device.resources) },
      status: 'pending',
    })
    .onConflict((conflict) => conflict.column('user_code').doNothing())
    .returning('id')
    .executeTakeFirst()
  return inserted !== undefined
}

/** Finds the device that waits for its user. */
export const findWaitingDevice = (
  db: Kysely<DB>,
  { userCode, now }: { userCode: string; now: Date },
): Promise<DeviceCode | undefined> =>
  db
    .selectFrom('oauth_device_codes')
    .selectAll()
    .where('user_code', '=', userCode)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .executeTakeFirst()

export interface DeviceAnswer {
  userCode: string
  now: Date
  status: 'approved' | 'denied'
  userId: string
  sessionId: string
  authenticatedAt: Date
  aal: Aal
}

/** Stores the user's answer; undefined when the device does not wait any more. */
export const answerWaitingDevice = (trx: Transaction<DB>, { userCode, now, ...answer }: DeviceAnswer) =>
  trx
    .updateTable('oauth_device_codes')
    .set({
      ...{ status: answer.status, user_id: answer.userId, session_id: answer.sessionId },
      ...{ authenticated_at: answer.authenticatedAt, aal: answer.aal },
    })
    .where('user_code', '=', userCode)
    .where('status', '=', 'pending')
    .where('expires_at', '>', now)
    .returningAll()
    .executeTakeFirst()

/** Whether a session has given this answer before. */
export async function isAnsweredBy(
  db: Kysely<DB>,
  { userCode, status, sessionId }: Pick<DeviceAnswer, 'userCode' | 'status' | 'sessionId'>,
): Promise<boolean> {
  const answered = await db
    .selectFrom('oauth_device_codes')
    .select('id')
    .where('user_code', '=', userCode)
    .where('status', '=', status)
    .where('session_id', '=', sessionId)
    .executeTakeFirst()
  return answered !== undefined
}

/**
 * Notes a poll of a waiting device, whose interval grows by 5 s when it came too early (RFC 8628, section 3.5).
 * Undefined when the device does not wait.
 */
export async function notePoll(
  db: Kysely<DB>,
  { hash, now }: { hash: Buffer; now: Date },
): Promise<{ is_early: boolean } | undefined> {
  const devices = sql.table('oauth_device_codes')
  const { rows } = await sql<{ is_early: boolean }>`
    with asked as (
      select id, coalesce(polled_at + make_interval(secs => interval_seconds) > ${now}, false) as is_early
      from ${devices} where device_code_hash = ${hash} and status = 'pending' and expires_at > ${now} for update
    )
    update ${devices} device
    set polled_at = ${now}, interval_seconds = interval_seconds + case when asked.is_early then 5 else 0 end
    from asked where device.id = asked.id
    returning asked.is_early`.execute(db)
  return rows[0]
}

export const findDeviceCode = (db: Kysely<DB>, hash: Buffer): Promise<DeviceCode | undefined> =>
  db.selectFrom('oauth_device_codes').selectAll().where('device_code_hash', '=', hash).executeTakeFirst()
