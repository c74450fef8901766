import { isIP } from 'node:net'
import type { FastifyRequest } from 'fastify'
import type { Client } from '../sessions/start-session.ts'

/** Longest user agent kept with a session; longer ones are cut, they are only shown. */
const MAX_USER_AGENT = 512

/**
 * Who calls, for session lists and the audit log. `Sb-Forwarded-For` counts only when the setting says it is trusted;
 * otherwise the first address in `X-Forwarded-For`, which is a claim, fit for display and for nothing else.
 */
export function clientOf(request: FastifyRequest, trustSbForwardedFor: boolean): Client {
  const trusted = trustSbForwardedFor ? trustedAddress(request) : undefined
  const forwarded = firstAddress(request.headers['x-forwarded-for'])
  return {
    ip: trusted ?? forwarded ?? addressOrNull(request.ip),
    userAgent: request.headers['user-agent']?.slice(0, MAX_USER_AGENT) ?? null,
  }
}

/** The first element of `Sb-Forwarded-For`, if it is an address. */
export function trustedAddress(request: FastifyRequest): string | undefined {
  const [first] = String(request.headers['sb-forwarded-for'] ?? '').split(',', 1)
  const address = first?.trim() ?? ''
  if (isAddress(address)) return address
  if (address !== '') request.log.warn('Sb-Forwarded-For does not start with an address')
  return undefined
}

/** What limits are counted by; undefined where there is no trusted address, and nothing to count by. */
export function limitKeyOf(...request: Parameters<typeof trustedClientAddress>): string | undefined {
  const address = trustedClientAddress(...request)
  return address === undefined ? undefined : networkOf(address)
}

/**
 * IPv6 by /64, of which every customer has at least one to themselves and could take another address for every request. An
 * IPv4 address in IPv6 is the IPv4 address; what is no address stays as it is.
 */
function networkOf(address: string): string {
  const [withoutZone = ''] = address.split('%', 1)
  if (isIP(withoutZone) !== 6) return address
  const [head = '', tail] = new URL(`http://[${withoutZone}]/`).hostname.slice(1, -1).split('::')
  const wordsOf = (text: string) =>
    text
      .split(':')
      .filter(Boolean)
      .map((word) => Number.parseInt(word, 16))
  const [before, after] = [wordsOf(head), wordsOf(tail ?? '')]
  const words = [...before, ...Array<number>(8 - before.length - after.length).fill(0), ...after]
  if (words.slice(0, 6).join() === '0,0,0,0,0,65535') {
    return words
      .slice(6)
      .flatMap((word) => [word >> 8, word & 255])
      .join('.')
  }
  return `${words
    .slice(0, 4)
    .map((word) => word.toString(16))
    .join(':')}::/64`
}

/**
 * Who calls, as others are told and limits begin with: the address a trusted proxy vouches for, as it wrote it. Undefined
 * without such a proxy; X-Forwarded-For is never used, a client can write it.
 */
export function trustedClientAddress(
  request: FastifyRequest,
  { limits, server }: { limits: { header: string | undefined }; server: { trustSbForwardedFor: boolean } },
): string | undefined {
  const trusted = server.trustSbForwardedFor ? trustedAddress(request) : undefined
  if (trusted || !limits.header) return trusted
  const [first] = String(request.headers[limits.header] ?? '').split(',', 1)
  return first?.trim().slice(0, 200) || undefined
}

const firstAddress = (header: string | string[] | undefined) =>
  String(header ?? '')
    .split(',')
    .map((part) => part.trim())
    .find(isAddress)

const addressOrNull = (address: string) => (isAddress(address) ? address : null)

/** Without a zone (`fe80::1%eth0`), which means nothing elsewhere and is no `inet`. */
const isAddress = (text: string) => isIP(text) !== 0 && !text.includes('%')
