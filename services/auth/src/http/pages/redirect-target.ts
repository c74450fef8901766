import type { FastifyRequest } from 'fastify'
import { isPermitted, type RedirectRules } from '../../core/redirects/allowed-targets.ts'

/**
 * First permitted of header and query `redirect_to`, `Referer`, site URL (contract/auth-core.md 4.1). The console is on
 * the site's host where auth is, but no user of its mails has anything to do there.
 */
export function redirectTarget(request: FastifyRequest, rules: RedirectRules): string {
  const query = request.query as { redirect_to?: unknown }
  const referer = request.headers['x-console'] === undefined ? request.headers.referer : undefined
  const candidates = [request.headers.redirect_to, query?.redirect_to, referer]
  const target = candidates.find((candidate) => typeof candidate === 'string' && isPermitted(candidate, rules))
  return target === undefined ? rules.siteUrl : asciiUrl(target as string)
}

/** Percent-encodes other letters than ASCII, as browsers do, because a header is ASCII; ASCII URLs stay as written. */
export const asciiUrl = (target: string) => (/^[\x21-\x7e]*$/.test(target) ? target : new URL(target).href)
