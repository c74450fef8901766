// The end of a sign-in at the request of an application. Rules and notices: core/oauth-server/logout.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { html } from '@services/common/html'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { LOGOUT_PATH } from '../../../config/pages/page-paths.ts'
import { type LogoutRequest, readLogout } from '../../../core/oauth-server/logout/read-logout.ts'
import { endClientSession } from '../../../core/oauth-server/tokens/end-client-session.ts'
import type { Deps } from '../../../deps.ts'
import { acceptForms, textsOf } from '../../../http/bodies/form-body.ts'
import { errorResponses, HtmlPage, Redirect } from '../../../http/bodies/shapes.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'
import { acceptLanguageOf } from '../../../http/pages/mail-context.ts'
import { pageLanguage } from '../../../http/pages/page-words.ts'
import { applicationName, sendTo } from '../../../http/pages/send-to.ts'
import { showPage } from '../../../http/pages/show-page.ts'
import { fill } from '../../../words/language.ts'
import { frameWords } from '../../../words/pages/frame.ts'
import { signInWords } from '../../../words/pages/sign-in.ts'

const Parameters = Type.Object(
  {
    id_token_hint: Type.Optional(
      Type.String({
        description: 'id_token of the session, also an expired one: its session ends without a question.',
      }),
    ),
    client_id: Type.Optional(Type.String({ description: 'Id of the client; that of the id_token if absent.' })),
    post_logout_redirect_uri: Type.Optional(Type.String({ description: 'Registered address to go to afterwards.' })),
    state: Type.Optional(Type.String({ description: 'Text that comes back.' })),
  },
  { additionalProperties: Type.Unknown() },
)

/** GET, POST /oauth/logout (OpenID Connect RP-Initiated Logout 1.0). */
export const oauthLogoutRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)
  acceptForms(app)
  const described = {
    tags: ['OAuth server'],
    summary: 'Signs out at the request of an application',
    response: { 200: HtmlPage, 303: Redirect, ...errorResponses(400, 404, 429) },
  }

  const logOut = async (request: FastifyRequest, reply: FastifyReply, given: Record<string, string>) => {
    await deps.limits.byAddress(request, 'oauthAuthorize')
    const read = await readLogout(deps, given)
    const { client, proven } = read
    if (client && proven) await endClientSession(deps, request.log, client, proven.sessionId)
    return leave(deps, request, reply, { given, ...read })
  }

  app.route({
    method: 'GET',
    url: '/oauth/logout',
    exposeHeadRoute: false,
    schema: { ...described, operationId: 'logOutForClient', querystring: Parameters },
    handler: (request, reply) => logOut(request, reply, textsOf(request.query)),
  })

  app.route({
    method: 'POST',
    url: '/oauth/logout',
    schema: {
      ...described,
      operationId: 'logOutForClientByForm',
      consumes: ['application/x-www-form-urlencoded'],
      body: Parameters,
    },
    handler: (request, reply) => logOut(request, reply, textsOf(request.body)),
  })
}

/** Leads to the page that ends the browser's session too; the cookie does not come with the form of another site. */
function leave(
  { config }: Deps,
  request: FastifyRequest,
  reply: FastifyReply,
  { given, client, location }: Pick<LogoutRequest, 'client' | 'location'> & { given: Record<string, string> },
): FastifyReply {
  reply.header('referrer-policy', 'no-referrer')
  if (config.pages.enabled) {
    const address = `${config.server.externalUrl}${LOGOUT_PATH}?${new URLSearchParams(given)}`
    return sendTo(config, request, reply, { location: address, status: 303 })
  }
  // Attackers can register an application, too: to its address leads a press alone.
  if (location !== undefined && client?.registration_type === 'manual') {
    return sendTo(config, request, reply, { location, status: 303 })
  }
  const language = pageLanguage(config, { acceptLanguage: acceptLanguageOf(request) })
  const { signOut: title, signedOut } = signInWords[language]
  const name = location === undefined ? '' : applicationName(config, location)
  const link = html`<a href="${location}" class="button">${fill(frameWords[language].goOn, { name })}</a>\n`
  const body = html`<p>${signedOut}</p>\n${location !== undefined && link}`
  return showPage(config, request, reply, { language, title, hidesAddress: true, body })
}
