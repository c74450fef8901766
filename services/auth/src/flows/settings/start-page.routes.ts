import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { html } from '@services/common/html'
import type { Config } from '../../config.ts'
import { showPage } from '../../http/pages/show-page.ts'

/** GET / for people who open the base URL in a browser. All other callers get 404. */
export const startPageRoutes: FastifyPluginAsyncTypebox<{ config: Config }> = async (app, { config }) => {
  const links = linksOf(config).map(
    ({ path, meaning }) =>
      html`<li><a href="${config.server.externalUrl + path}">${path}</a><br><span>${meaning}</span></li>\n`,
  )
  const body = html`<p>User management and authentication, for applications to call.</p>
<ul class="rows">
${links}</ul>
`
  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    reply.header('vary', 'accept')
    if (!request.headers.accept?.includes('text/html')) return reply.callNotFound()
    return showPage(config, request, reply, { language: 'en', title: 'Auth', body })
  })
}

const linksOf = ({ console, pages }: Config) => [
  ...(pages.enabled ? [{ path: '/ui/sign-in', meaning: 'the pages for users: sign-in, sign-up, account' }] : []),
  ...(console.enabled && console.port === undefined
    ? [{ path: '/console', meaning: 'the console for administrators' }]
    : []),
  { path: '/docs', meaning: 'every endpoint, with its requests and answers' },
  { path: '/settings', meaning: 'the enabled ways to sign in' },
  { path: '/health', meaning: 'the version, if the service answers' },
]
