import { limitKeyOfAddress, parseAddress, readTrustedHeader, type TrustedClient } from '@services/common/client-address'
import type { FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import type { Client } from '../core/sessions/start-session.ts'

/** Longest user agent kept with a session; longer ones are cut, they are only shown. */
const MAX_USER_AGENT = 512

/** The settings that name a trusted header. */
export interface TrustSettings {
  limits: Pick<Config['limits'], 'header'>
  server: Pick<Config['server'], 'trustSbForwardedFor'>
}

/**
 * The client of a request, for session lists, the audit log and challenges: the address that limits count by. Where no
 * header is trusted it is the first address in `X-Forwarded-For`, which is a claim, fit for display and for nothing else.
 */
export function clientOf(request: FastifyRequest, settings: TrustSettings): Client {
  const isTrusting = settings.limits.header !== undefined || settings.server.trustSbForwardedFor
  const told = isTrusting ? trustedClient(request, settings)?.address : claimedAddress(request)
  return {
    ip: told ?? parseAddress(request.ip) ?? null,
    userAgent: request.headers['user-agent']?.slice(0, MAX_USER_AGENT) ?? null,
  }
}

/** Limit key of the client; undefined without a trusted header, where there is nothing to count by. */
export const limitKeyOf = (request: FastifyRequest, settings: TrustSettings): string | undefined =>
  trustedClient(request, settings)?.limitKey

/** Network of the client, by which gaps are kept: its limit key or, where no header is trusted, the peer's. */
export const networkOf = (request: FastifyRequest, settings: TrustSettings): string =>
  limitKeyOf(request, settings) ?? limitKeyOfAddress(request.ip)

/** Address of the client as others may be given it: what a trusted proxy vouches for, and never `X-Forwarded-For`. */
export const trustedAddress = (request: FastifyRequest, settings: TrustSettings): string | undefined =>
  trustedClient(request, settings)?.address

/** The specification takes the first value of `Sb-Forwarded-For`; the trusted header follows where that is no address. */
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
