import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { answerOf, answerParameters, FORM_POST_PATH } from '../../../core/oauth-server/authorizations/answer-address.ts'
import { requestOfPage } from '../../../core/oauth-server/authorizations/authorization-code.ts'
import { takePosting } from '../../../core/oauth-server/authorizations/authorizations.store.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { errorResponses, HtmlPage } from '../../../http/bodies/shapes.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'
import { isPrefetch } from '../../../http/pages/answer-by-redirect.ts'
import { acceptLanguageOf } from '../../../http/pages/mail-context.ts'
import { showPage } from '../../../http/pages/show-page.ts'
import { postingPage } from './posting-page.ts'

export const formPostRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)

  app.route({
    method: 'GET',
    url: `${FORM_POST_PATH}/:page_id`,
    exposeHeadRoute: false,
    schema: {
      operationId: 'postAuthorizationAnswer',
      tags: ['OAuth server'],
      summary: 'Page that posts an answer to the application (response_mode=form_post); shown once, for a minute',
      params: Type.Object({ page_id: Type.String() }),
      response: { 200: HtmlPage, 204: Type.Null(), ...errorResponses(404) },
    },
    handler: async (request, reply) => {
      if (isPrefetch(request)) return reply.code(204).send(null)
      const id = requestOfPage(deps.oauthCodeKey, request.params.page_id)
      const taken = id === undefined ? undefined : await takePosting(deps.db, id, deps.now())
      if (!taken) throw apiError('oauth_authorization_not_found')
      const answer = answerParameters(deps, taken.state, answerOf(deps, taken))
      return showPage(
        deps.config,
        request,
        reply,
        postingPage(deps.config, acceptLanguageOf(request), taken.redirect_uri, answer),
      )
    },
  })
}
