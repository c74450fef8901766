// Redirects. A large one is a page that goes there by itself. Proxies keep 4 to 8 KiB for the headers of an answer and
// replace a larger one by 502 (nginx: "upstream sent too big header"). By then the link would be used up.
import { escapeHtml } from '@services/common/html'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import { acceptLanguageOf } from './mail-context.ts'
import { pageWords } from './page-words.ts'
import { sendPage, smallPage, smallPagePolicy } from './small-page.ts'

/**
 * Longest Location, with the cookies beside it. All other headers take less than 900 bytes, so that none of ours pass
 * 4,000.
 */
export const MAX_LOCATION = 3 * 1024

/** Replaces the page in the history: going back would open it again. */
const SCRIPT = `location.replace(document.querySelector('a').href)`
const POLICY = smallPagePolicy(SCRIPT)

export interface Redirection {
  location: string
  status: 302 | 303
}

/** Sends the browser to another address: by the status, or by a page with a script and a link (200). */
export function sendTo(
  config: Pick<Config, 'mail' | 'siteUrl'>,
  request: FastifyRequest,
  reply: FastifyReply,
  { location, status }: Redirection,
): FastifyReply {
  const cookies = [reply.getHeader('set-cookie') ?? []].flat().join('')
  if (location.length + cookies.length <= MAX_LOCATION) return reply.redirect(location, status)
  const { language, words } = pageWords(config, acceptLanguageOf(request))
  const { heading, text, button } = words.sentOn
  const content = `<a href="${escapeHtml(location)}">${escapeHtml(button)}</a>`
  return sendPage(reply, smallPage({ language, heading, text, content, script: SCRIPT }), POLICY)
}
