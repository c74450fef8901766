import type { FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import type { MailContext } from '../../core/verification-messages/link-mail.ts'
import { redirectTarget } from './redirect-target.ts'

/** Longest Accept-Language kept with a queued message. */
const MAX_ACCEPT_LANGUAGE = 200

export function mailContextOf(
  request: FastifyRequest,
  config: Pick<Config, 'redirectAllowList' | 'server' | 'siteUrl'>,
): MailContext {
  return {
    redirectTo: redirectTarget(request, { siteUrl: config.siteUrl, allowList: config.redirectAllowList }),
    externalUrl: externalBase(request, config),
    acceptLanguage: acceptLanguageOf(request),
  }
}

export const acceptLanguageOf = ({ headers }: FastifyRequest): string | undefined =>
  headers['accept-language']?.slice(0, MAX_ACCEPT_LANGUAGE)

/**
 * Base of the links in a mail: the listed host of the request, else API_EXTERNAL_URL. A client can write the header, so
 * only MAILER_EXTERNAL_HOSTS are trusted; their links use https and no path (contract/auth-core.md 4.2).
 */
export function externalBase(
  request: FastifyRequest,
  { server }: { server: { externalUrl: string; externalHosts: readonly string[] } },
): string {
  const host = (single(request.headers['x-forwarded-host']) ?? hostOfTarget(request.raw.url))?.toLowerCase()
  if (host === undefined || !server.externalHosts.includes(host)) return server.externalUrl
  // A developer's machine has no certificate.
  const isPlain = host === 'localhost' && schemeOf(request) === 'http'
  return `${isPlain ? 'http' : 'https'}://${host}`
}

/** Host of an absolute request target (RFC 9112 3.2.2); a proxy may have rewritten the Host header. */
function hostOfTarget(target: string | undefined): string | undefined {
  return target && /^https?:\/\//i.test(target) && URL.canParse(target) ? new URL(target).hostname : undefined
}

const schemeOf = (request: FastifyRequest) =>
  single(request.headers['x-forwarded-proto'])?.toLowerCase() ??
  (request.raw.url?.startsWith('https:') ? 'https' : 'http')

const single = (header: string | string[] | undefined) =>
  typeof header === 'string' && header !== '' ? header : undefined
