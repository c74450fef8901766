import {
  limitKeyOfAddress,
  parseAddress,
  readTrustedHeader,
  type TrustedClient,
} from '@services/common/http/client-address'
import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import type { Client } from '../../core/sessions/start-session.ts'

/** Longest user agent of a session; it is only displayed. */
const MAX_USER_AGENT = 512

export interface TrustSettings {
  limits: Pick<Config['limits'], 'header'>
  server: Pick<Config['server'], 'trustSbForwardedFor'>
}

/**
 * Client of a request for session lists, the audit log and challenges: the address that limits use. Without a trusted
 * header it is the first address in `X-Forwarded-For`, which anyone can forge: fit for display only.
 */
export function clientOf(request: FastifyRequest, settings: TrustSettings): Client {
  const isTrusting = settings.limits.header !== undefined || settings.server.trustSbForwardedFor
  const address = isTrusting ? trustedClient(request, settings)?.address : claimedAddress(request)
  return {
    ip: address ?? parseAddress(request.ip) ?? null,
    userAgent: request.headers['user-agent']?.slice(0, MAX_USER_AGENT) ?? null,
  }
}

/** Limit key of the client; undefined without a trusted header. */
export const limitKeyOf = (request: FastifyRequest, settings: TrustSettings): string | undefined =>
  trustedClient(request, settings)?.limitKey

/** Network of the client, the key of send gaps: its limit key or, without a trusted header, the peer's. */
export const networkOf = (request: FastifyRequest, settings: TrustSettings): string =>
  limitKeyOf(request, settings) ?? limitKeyOfAddress(request.ip)

/** Address of the client fit for third parties: vouched for by a trusted proxy, never from `X-Forwarded-For`. */
export const trustedAddress = (request: FastifyRequest, settings: TrustSettings): string | undefined =>
  trustedClient(request, settings)?.address

/** First value of `Sb-Forwarded-For` (specification); if that is no address, the trusted header. */
function trustedClient(request: FastifyRequest, { limits, server }: TrustSettings): TrustedClient | undefined {
  const isForwarded = server.trustSbForwardedFor && request.headers['sb-forwarded-for'] !== undefined
  const forwarded = isForwarded ? readTrustedHeader(request, 'sb-forwarded-for', 'first') : undefined
  if (forwarded?.address || !limits.header) return forwarded
  return readTrustedHeader(request, limits.header) ?? forwarded
}

function claimedAddress(request: FastifyRequest): string | undefined {
  for (const part of String(request.headers['x-forwarded-for'] ?? '').split(',')) {
    const address = parseAddress(part)
    if (address !== undefined) return address
  }
  return undefined
}
