// Trusting the device of a session: the user has just proven a factor there and is not asked for it at later sign-ins.
// Its rules and its end: ../../core/trusted-devices/use-device.ts. Tests: ../../../test/trusted-devices.test.ts.
import { type Static, Type } from 'typebox'
import { type AuditLog, audit, type Origin } from '../../core/audit/audit.ts'
import { provesFactor } from '../../core/factors/assurance.ts'
import { isRecent } from '../../core/freshness/recent.ts'
import { notify } from '../../core/outbox/notify.ts'
import { type LiveCaller, withLockedCaller } from '../../core/sessions/caller.ts'
import { formatDeviceToken, hashSecret, SECRET_BYTES } from '../../core/trusted-devices/device-token.ts'
import { endLeastUsed, insertDevice } from '../../core/trusted-devices/trusted-devices.store.ts'
import { provenFactorIds } from '../../core/trusted-devices/use-device.ts'
import type { AmrEntry } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'

export const NewTrustedDevice = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    token: Type.String({ description: 'For the header `x-device-token` of the next sign-in; shown once.' }),
    expires_at: Type.String({ format: 'date-time' }),
  },
  { title: 'NewTrustedDevice' },
)

interface Order {
  name: string | undefined
  client: Origin
  acceptLanguage: string | undefined
}

const MAX_NAME_LENGTH = 255

/** Trusts a device. Throws insufficient_aal unless the session has just proven a factor. */
export async function trustDevice(
  deps: Deps,
  log: AuditLog,
  caller: LiveCaller,
  { name, client: { ip, userAgent }, acceptLanguage }: Order,
): Promise<Static<typeof NewTrustedDevice>> {
  if (name !== undefined && name.length > MAX_NAME_LENGTH) {
    throw apiError('validation_failed', { message: `name may have ${MAX_NAME_LENGTH} characters` })
  }
  if (!hasJustProven(deps, caller.session)) throw unproven()
  await deps.limits.deviceTrusted(caller.user.id)
  const id = deps.newId()
  const secret = deps.random(SECRET_BYTES)
  const { ttlSeconds, max } = deps.config.mfa.trustedDevices
  const created_at = deps.now()
  const expires_at = new Date(created_at.getTime() + ttlSeconds * 1000)
  await withLockedCaller(deps, caller, async (trx, { user, session }) => {
    const { factor_id } = session
    if (factor_id === null || !hasJustProven(deps, session)) throw unproven()
    await insertDevice(trx, {
      ...{ id, user_id: user.id, name: name || null, token_hash: hashSecret(secret) },
      ...{ factor_ids: provenFactorIds(user.factors), factor_id, session_id: session.id },
      ...{ user_agent: userAgent, ip, created_at, expires_at },
    })
    await audit(deps, trx, log, { action: 'trusted_device_added', actor: user, traits: { device_id: id, factor_id } })
    const devices = await endLeastUsed(trx, user.id, max)
    if (devices > 0) {
      await audit(deps, trx, log, { action: 'trusted_device_removed', actor: user, traits: { devices } })
    }
    await notify(deps, trx, user, 'mfa_trusted_device_added_notification', { Device: name ?? '' }, { acceptLanguage })
  })
  return { id, token: formatDeviceToken({ deviceId: id, secret }), expires_at: expires_at.toISOString() }
}

/**
 * Whether the session has just proven a factor. A recovery code would make a permanent thing of one that works once,
 * and a device would prolong itself.
 */
const hasJustProven = (deps: Deps, session: { amr: readonly AmrEntry[] }): boolean =>
  isRecent(deps, session, provesFactor)

const unproven = () =>
  apiError('insufficient_aal', { message: 'Trusting a device requires a second factor that was just proven' })
