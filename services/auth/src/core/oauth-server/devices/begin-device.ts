// Devices without a browser (RFC 8628). A device shows a code, and its user enters it on /ui/device. Meanwhile the
// device asks the token endpoint. The rule: codes of devices are stored as hashes, and every time is the service's. The
// page: flows/pages/oauth/device.ts; tests: flows/oauth-server/device.
import type { Kysely } from 'kysely'
import { DEVICE_PATH } from '../../../config/pages/page-paths.ts'
import type { Config } from '../../../config.ts'
import type { DB, OAuthClient } from '../../../db/tables.ts'
import type { Origin } from '../../audit/audit.ts'
import { hashLinkToken, type RandomBytes } from '../../one-time-tokens/one-time-token.ts'
import { insertDeviceCode } from './device-codes.store.ts'
import { newUserCode, shownUserCode } from './user-code.ts'

/** Time that a user has to find the page and enter the code. */
const LIFETIME_SECONDS = 600

/** Least time between two polls of a device. */
const INTERVAL_SECONDS = 5

interface BeginDeps {
  config: Pick<Config, 'server'>
  db: Kysely<DB>
  newRowId: () => string
  now: () => Date
  random: RandomBytes
}

/** Scopes and resources that a device asks for, checked. */
export interface DeviceRequest {
  scopes: string[]
  resources: string[]
}

/** Stores the request of a device, and returns the answer to it (RFC 8628, section 3.2). */
export async function beginDevice(
  { config, db, newRowId, now, random }: BeginDeps,
  client: Pick<OAuthClient, 'id'>,
  request: DeviceRequest,
  { ip, userAgent }: Pick<Origin, 'ip' | 'userAgent'>,
) {
  const deviceCode = Buffer.from(random(32)).toString('base64url')
  const createdAt = now()
  const device = {
    ...{ id: newRowId(), device_code_hash: hashLinkToken(deviceCode), client_id: client.id, ...request },
    ...{ ip, user_agent: userAgent, interval_seconds: INTERVAL_SECONDS, created_at: createdAt },
    expires_at: new Date(createdAt.getTime() + LIFETIME_SECONDS * 1000),
  }
  let userCode = newUserCode(random)
  while (!(await insertDeviceCode(db, { ...device, user_code: userCode }))) userCode = newUserCode(random)
  const page = config.server.externalUrl + DEVICE_PATH
  const shown = shownUserCode(userCode)
  return {
    device_code: deviceCode,
    user_code: shown,
    verification_uri: page,
    verification_uri_complete: `${page}?user_code=${shown}`,
    expires_in: LIFETIME_SECONDS,
    interval: INTERVAL_SECONDS,
  }
}
