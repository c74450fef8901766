import type { FastifyRequest } from 'fastify'
import { ARRIVAL_PATH } from '../../config/pages/page-paths.ts'
import type { Config } from '../../config.ts'
import { isPermitted, type RedirectRules } from '../../core/redirects/allowed-targets.ts'
import { withQuery } from '../../core/redirects/redirect-url.ts'

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

/** Address that shows a refusal where the target is a page of ours, which reads no fragment; else undefined. */
export function ownRefusal(
  { pages, server: { externalUrl } }: Pick<Config, 'pages' | 'server'>,
  target: string,
  { code }: { code: string },
): string | undefined {
  if (!pages.enabled || !target.startsWith(`${externalUrl}/ui/`)) return undefined
  const arrival = externalUrl + ARRIVAL_PATH
  return withQuery(target.startsWith(`${arrival}?`) ? target : arrival, { error_code: code })
}
