import type { Kysely } from 'kysely'
import { type Static, Type } from 'typebox'
import type { DB } from '../../db/tables.ts'
import { listDevices } from './trusted-devices.store.ts'
import { type DeviceDeps, deviceExpiry } from './use-device.ts'

const Timestamp = Type.String({ format: 'date-time' })
const orNull = <Shape extends Parameters<typeof Type.Union>[0][number]>(shape: Shape, description: string) =>
  Type.Union([shape, Type.Null()], { description })

/** A trusted device as its owner and admins see it: enough to recognise it, and no secret. */
export const TrustedDeviceShape = Type.Object(
  {
    id: Type.String({ format: 'uuid' }),
    name: orNull(Type.String(), 'Name that the application gave it.'),
    created_at: Timestamp,
    last_used_at: orNull(Timestamp, 'Newest sign-in with it.'),
    expires_at: Timestamp,
    user_agent: orNull(Type.String(), 'Client that trusted it or, later, of the newest sign-in.'),
    ip: orNull(Type.String(), 'Address that the client claims; fit for display only.'),
  },
  { title: 'TrustedDevice' },
)

/** Lists a user's trusted devices, newest first, without expired ones. */
export async function shownDevices(
  deps: Pick<DeviceDeps, 'config' | 'now'> & { db: Kysely<DB> },
  userId: string,
): Promise<Static<typeof TrustedDeviceShape>[]> {
  const devices = await listDevices(deps.db, userId)
  return devices
    .map((device) => ({ ...device, expires_at: deviceExpiry(deps, device) }))
    .filter(({ expires_at: end }) => end > deps.now())
    .map(({ id, name, created_at, last_used_at, expires_at, user_agent, ip }) => ({
      id,
      name,
      created_at: created_at.toISOString(),
      last_used_at: last_used_at?.toISOString() ?? null,
      expires_at: expires_at.toISOString(),
      user_agent,
      ip,
    }))
}
