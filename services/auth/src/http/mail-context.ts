import type { FastifyRequest } from 'fastify'
import type { Config } from '../config.ts'
import type { MailContext } from '../core/verification-messages/link-mail.ts'
import { externalBase } from './external-base.ts'
import { redirectTarget } from './redirect-target.ts'

/** Longest Accept-Language kept with a queued message. */
const MAX_ACCEPT_LANGUAGE = 200

/** Properties of a request that its mail depends on. */
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
