import { createHash, createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'

/** Token of a trusted device. Layout before base64url, always 64 characters: device id (16 bytes) · secret (32). */
export interface DeviceToken {
  deviceId: string
  secret: Buffer
}

const ID_BYTES = 16
export const SECRET_BYTES = 32
const TOKEN_PATTERN = /^[A-Za-z0-9_-]{64}$/

/** Time in which the token before the current one gets the current one again. Reasons: use-device.ts. */
export const GRACE_MS = 60_000

/** Replaced tokens that are recognised: ten sign-ins a day for three months. Each takes 4 µs at most. */
const MAX_RECOGNISED = 1_000

export const formatDeviceToken = ({ deviceId, secret }: DeviceToken): string =>
  Buffer.concat([idBytes(deviceId), secret]).toString('base64url')

/** Returns undefined for a text that is no token at all. */
export function parseDeviceToken(text: string): DeviceToken | undefined {
  if (!TOKEN_PATTERN.test(text)) return undefined
  const bytes = Buffer.from(text, 'base64url')
  const id = bytes.toString('hex', 0, ID_BYTES)
  const deviceId = [id.slice(0, 8), id.slice(8, 12), id.slice(12, 16), id.slice(16, 20), id.slice(20)].join('-')
  return { deviceId, secret: bytes.subarray(ID_BYTES) }
}

export const hashSecret = (secret: Buffer): Buffer => createHash('sha256').update(secret).digest()

/**
 * Returns the token that replaces this one. It follows from this one and the server's key. So two tabs get the same,
 * and replaced ones are recognised without being stored.
 */
export const successorOf = (key: KeyObject, { deviceId, secret }: DeviceToken): DeviceToken => ({
  deviceId,
  secret: createHmac('sha256', key).update(idBytes(deviceId)).update(secret).digest(),
})

/**
 * Result of a token. `repeated`: replaced a moment ago; `replaced`: longer ago; `unknown`: never a token of the device.
 */
export type Verdict = 'current' | 'repeated' | 'replaced' | 'unknown'

export function judgeToken(
  key: KeyObject,
  presented: DeviceToken,
  device: { token_hash: Buffer; uses: number; last_used_at: Date | null },
  now: Date,
): Verdict {
  const isCurrent = ({ secret }: DeviceToken) => timingSafeEqual(hashSecret(secret), device.token_hash)
  if (isCurrent(presented)) return 'current'
  let token = presented
  for (let behind = 1; behind <= Math.min(device.uses, MAX_RECOGNISED); behind++) {
    token = successorOf(key, token)
    if (!isCurrent(token)) continue
    const isRecent = device.last_used_at !== null && device.last_used_at.getTime() > now.getTime() - GRACE_MS
    return behind === 1 && isRecent ? 'repeated' : 'replaced'
  }
  return 'unknown'
}

const idBytes = (id: string): Buffer => Buffer.from(id.replaceAll('-', ''), 'hex')
