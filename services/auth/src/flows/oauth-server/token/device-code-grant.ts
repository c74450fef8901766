import { findDeviceCode } from '../../../core/oauth-server/devices/device-codes.store.ts'
import { pollDevice } from '../../../core/oauth-server/devices/redeem-device-code.ts'
import type { TokenAnswer } from '../../../core/oauth-server/tokens/issue-client-tokens.ts'
import { hashLinkToken } from '../../../core/one-time-tokens/one-time-token.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { type GrantRequest, narrowedResources } from './grant.ts'
import { openSession, refuseUsed } from './open-session.ts'

export interface DeviceFields {
  device_code?: string | undefined
  resources: readonly string[]
}

/** Answers the poll of a device (RFC 8628, section 3.4); a second use of its code ends the session of the first. */
export async function exchangeDeviceCode(request: GrantRequest, fields: DeviceFields): Promise<TokenAnswer> {
  const { device_code: code, resources } = fields
  if (!code) throw oauthError('invalid_request', { message: 'device_code is required' })
  const { deps, client } = request
  const hash = hashLinkToken(code)
  const found = await pollDevice(deps, client, hash)
  narrowedResources(found.resources, resources)
  const presented = { hash, resources, challenge: null, redirectUri: null }
  const opened = found.given_session_id === null && (await openSession(request, { kind: 'device_code', ...presented }))
  if (opened) return opened
  throw await refuseUsed(request, await findDeviceCode(deps.db, hash))
}
