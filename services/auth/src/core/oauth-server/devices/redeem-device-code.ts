import type { Kysely } from 'kysely'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { type DeviceCode, findDeviceCode, notePoll } from './device-codes.store.ts'

export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'

interface Deps {
  db: Kysely<DB>
  now: () => Date
}

/**
 * Judges a poll of a device (RFC 8628, section 3.5), outside of a transaction, which a refusal would undo. Throws
 * authorization_pending, slow_down, expired_token, access_denied, and invalid_grant for a code that this client does
 * not have. Returns the device of an approved code, also of a used one.
 */
export async function pollDevice(
  { db, now }: Deps,
  client: Pick<OAuthClient, 'id'>,
  hash: Buffer,
): Promise<DeviceCode> {
  const device = await findDeviceCode(db, hash)
  if (device?.client_id !== client.id) throw oauthError('invalid_grant')
  if (device.status === 'denied') throw oauthError('access_denied')
  if (device.expires_at <= now()) throw oauthError('expired_token')
  if (device.status === 'approved') return device
  const poll = await notePoll(db, { hash, now: now() })
  // Without one it was answered meanwhile: the next poll shows the answer.
  throw oauthError(poll?.is_early ? 'slow_down' : 'authorization_pending')
}
