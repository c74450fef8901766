import type { FastifyRequest } from 'fastify'
import { isPermitted, type RedirectRules } from '../core/redirects/redirect-rules.ts'

/**
 * The first permitted one of header `redirect_to`, query `redirect_to` and `Referer`; else the site URL. Anything not
 * permitted is passed over silently (contract/auth-core.md 4.1).
 */
export function redirectTarget(request: FastifyRequest, rules: RedirectRules): string {
  const query = request.query as { redirect_to?: unknown }
  const candidates = [request.headers.redirect_to, query?.redirect_to, request.headers.referer]
  const target = candidates.find((candidate) => typeof candidate === 'string' && isPermitted(candidate, rules))
  return target === undefined ? rules.siteUrl : asciiUrl(target as string)
}

/** A header is ASCII: other letters are percent-encoded as browsers do it; what is ASCII stays as it was written. */
const asciiUrl = (target: string) => (/^[\x21-\x7e]*$/.test(target) ? target : new URL(target).href)
