import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import type { Client } from '../../core/sessions/start-session.ts'
import { parseDeviceToken } from '../../core/trusted-devices/device-token.ts'
import type { NextToken } from '../../core/trusted-devices/use-device.ts'
import { apiError } from '../../errors.ts'
import { clientOf } from '../limits/client.ts'
import type { Limits } from '../limits/rate-limit.ts'

/** Header of a sign-in with the device's token, and of its answer with the next one. */
export const DEVICE_TOKEN = 'x-device-token'
const DEVICE_TOKEN_EXPIRY = 'x-device-token-expires-at'

export const DEVICE_HEADERS = [DEVICE_TOKEN, DEVICE_TOKEN_EXPIRY]

interface DeviceDoorDeps {
  config: Config
  limits: Pick<Limits, 'deviceAttempt'>
}

/** Throws feature_disabled while devices cannot be trusted. */
export function requireDevicesEnabled({ mfa }: Pick<Config, 'mfa'>): void {
  if (mfa.trustedDevices.ttlSeconds > 0) return
  throw apiError('feature_disabled', { message: 'Trusted devices are disabled' })
}

/**
 * Runs a sign-in with the device of the request's header, if there is one, and answers its next token. Attempts count
 * by address before the account is known, and one too many is a sign-in without a device: no answer differs by account.
 */
export async function withTrustedDevice<Result>(
  deps: DeviceDoorDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  signIn: (client: Client) => Promise<Result>,
): Promise<Result> {
  const client = clientOf(request, deps.config)
  const isEnabled = deps.config.mfa.trustedDevices.ttlSeconds > 0
  const token = isEnabled ? parseDeviceToken(String(request.headers[DEVICE_TOKEN] ?? '')) : undefined
  const refund = token && (await deps.limits.deviceAttempt(request))
  if (!token || !refund) return signIn(client)
  const answered: NextToken[] = []
  const device = { token, log: request.log, answer: (next: NextToken) => void answered.push(next) }
  const result = await signIn({ ...client, device })
  const next = answered.at(-1)
  if (next) {
    reply.header(DEVICE_TOKEN, next.token).header(DEVICE_TOKEN_EXPIRY, next.expiresAt.toISOString())
    await refund()
  }
  return result
}
