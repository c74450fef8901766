// Redirects. A large one is a page that goes there by itself. Proxies keep 4 to 8 KiB for the headers of an answer and
// replace a larger one by 502 (nginx: "upstream sent too big header"). By then the link would be used up. After a form
// it is always a page: under `form-action 'self'` a browser refuses a redirect to another origin.
import { html } from '@services/common/html'
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Config } from '../../config.ts'
import { fill } from '../../words/language.ts'
import { frameWords } from '../../words/pages/frame.ts'
import { acceptLanguageOf } from './mail-context.ts'
import { pageLanguage } from './page-words.ts'
import { showPage } from './show-page.ts'

/**
 * Longest Location, with the cookies beside it. All other headers take less than 900 bytes, so that none of ours pass
 * 4,000.
 */
export const MAX_LOCATION = 3 * 1024

export interface Redirection {
  location: string
  status: 302 | 303
}

export type PageConfig = Pick<Config, 'pages' | 'server' | 'siteUrl'>

/** Sends the browser to another address: by the status, or by a page with a link (200). */
export function sendTo(
  config: PageConfig,
  request: FastifyRequest,
  reply: FastifyReply,
  { location, status }: Redirection,
): FastifyReply {
  const cookies = [reply.getHeader('set-cookie') ?? []].flat().join('')
  if (location.length + cookies.length <= MAX_LOCATION) return reply.redirect(location, status)
  return leaveTo(config, request, reply, location)
}

/**
 * Sends a page that goes to the address at once, replacing itself in the history: going back would open it again. For
 * an address of an application's own scheme the link alone is certain. Its address may hold a secret.
 */
export function leaveTo(
  config: PageConfig,
  request: FastifyRequest,
  reply: FastifyReply,
  location: string,
): FastifyReply {
  const language = pageLanguage(config, { acceptLanguage: acceptLanguageOf(request) })
  const { leaving, sentOn, goOn } = frameWords[language]
  const name = applicationName(config, location)
  return showPage(config, request, reply, {
    ...{ language, title: leaving, hidesAddress: true },
    head: html`<meta http-equiv="refresh" content="0;url=${location}">\n`,
    body: html`<p>${fill(sentOn, { name })}</p>
<a href="${location}" class="button">${fill(goOn, { name })}</a>
`,
  })
}

/** Name of the application at an address: the site's, another host, or the scheme of a native application. */
export function applicationName({ pages, siteUrl }: Pick<Config, 'pages' | 'siteUrl'>, location: string): string {
  const { host, protocol } = new URL(location)
  return host === new URL(siteUrl).host ? pages.name : host || protocol
}
