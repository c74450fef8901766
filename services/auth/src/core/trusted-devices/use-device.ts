// Trusted devices: a token that replaces the second factor at the sign-ins of one user. Alone it opens nothing: it is
// read once the first factor is proven. Each use replaces it. Tests: test/trusted-devices.test.ts.
//
// Token presented at a sign-in       | result
// current                            | the session begins at aal2; the successor is answered
// replaced less than GRACE_MS ago    | the same successor again: another tab, or a request whose answer was lost
// replaced before                    | the device ends and is audited, its sessions fall to aal1; the sign-in is one of
// aal1 any other, another user's, expired | ignored
//
// A copy of a token is noticed when the second of its two holders signs in: that token is a replaced one by then. The
// grace gives a thief no more than the successor that the next use replaces. It is short, unlike the repeats of refresh
// tokens (../sessions/refresh-reuse.ts), because a lost answer costs one proof of the factor here and no sign-in.
import type { KeyObject } from 'node:crypto'
import { afterCommit } from '@services/common/database/after-commit'
import type { Transaction } from 'kysely'
import type { DB, FactorJson } from '../../db/tables.ts'
import { countDevice } from '../../metrics.ts'
import { type Actor, type AuditDeps, type AuditLog, audit, type Origin } from '../audit/audit.ts'
import { lockAndReadUser } from '../users/users.store.ts'
import { type DeviceToken, formatDeviceToken, hashSecret, judgeToken, successorOf } from './device-token.ts'
import {
  endDevices,
  findDevice,
  only,
  rotateToken,
  type TrustedDevice,
  withdrawDevices,
} from './trusted-devices.store.ts'

/** Token that the client has to store in place of the presented one. */
export interface NextToken {
  token: string
  expiresAt: Date
}

export interface PresentedDevice {
  token: DeviceToken
  log: AuditLog
  /** Takes the next token; its transaction may still fail. */
  answer(next: NextToken): void
}

export interface DeviceDeps extends AuditDeps {
  trustedDeviceKey: KeyObject
  config: AuditDeps['config'] & { mfa: { trustedDevices: { ttlSeconds: number } } }
}

/** Ids of the proven factors, in a fixed order. Recovery codes are no factor of their own. */
export const provenFactorIds = (factors: FactorJson[] | null): string[] =>
  (factors ?? [])
    .filter(({ status, factor_type: type }) => status === 'verified' && type !== 'recovery_code')
    .map(({ id }) => id)
    .toSorted()

/** Returns the end of a device; a shorter setting applies to devices that exist. */
export const deviceExpiry = (
  { config: { mfa } }: Pick<DeviceDeps, 'config'>,
  { expires_at: end, created_at: begin }: Pick<TrustedDevice, 'expires_at' | 'created_at'>,
): Date => new Date(Math.min(end.getTime(), begin.getTime() + mfa.trustedDevices.ttlSeconds * 1000))

/** Uses a device for a new session of the user, whom it locks. Returns undefined where it replaces no second factor. */
export async function useDevice(
  deps: DeviceDeps,
  trx: Transaction<DB>,
  session: { id: string; userId: string },
  { token, log, answer }: PresentedDevice,
  { ip, userAgent }: Origin,
): Promise<TrustedDevice | undefined> {
  const user = await lockAndReadUser(trx, session.userId)
  const device = user && (await findDevice(trx, user.id, token.deviceId))
  if (!device) return undefined
  const now = deps.now()
  const expiresAt = deviceExpiry(deps, device)
  if (expiresAt <= now || String(device.factor_ids.toSorted()) !== String(provenFactorIds(user.factors))) {
    await endDevices(trx, user.id, only(device.id))
    return undefined
  }
  const verdict = judgeToken(deps.trustedDeviceKey, token, device, now)
  await afterCommit(trx, () => countDevice(verdict))
  if (verdict === 'unknown') return undefined
  const traits = { device_id: device.id, session_id: session.id }
  if (verdict === 'replaced') {
    await withdrawDevices(trx, user.id, only(device.id))
    await report(deps, trx, log, 'trusted_device_reused', user, traits)
    return undefined
  }
  const next = successorOf(deps.trustedDeviceKey, token)
  if (verdict === 'current') {
    await rotateToken(trx, device.id, { tokenHash: hashSecret(next.secret), userAgent, ip, now })
  }
  await report(deps, trx, log, 'trusted_device_used', user, traits)
  answer({ token: formatDeviceToken(next), expiresAt })
  return device
}

const report = (
  deps: DeviceDeps,
  trx: Transaction<DB>,
  log: AuditLog,
  action: 'trusted_device_reused' | 'trusted_device_used',
  actor: Actor,
  traits: { device_id: string; session_id: string },
) => audit(deps, trx, log, { action, actor, traits })
