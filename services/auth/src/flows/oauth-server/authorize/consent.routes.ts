import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { Config } from '../../../config.ts'
import {
  answerAuthorization,
  viewAuthorization,
} from '../../../core/oauth-server/authorizations/answer-authorization.ts'
import {
  AuthorizationDetails,
  authorizationDetails,
} from '../../../core/oauth-server/authorizations/authorization-details.ts'
import { isPermitted } from '../../../core/redirects/allowed-targets.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { choiceOf, errorResponses } from '../../../http/bodies/shapes.ts'
import { requireLiveSession } from '../../../http/caller/authenticate.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'

const schema = { tags: ['OAuth server'], security: [{ user: [] }] }
const Params = Type.Object({ authorization_id: Type.String() })
const RedirectUrl = Type.Object({
  redirect_url: Type.String({ description: 'Address that the browser has to go to.' }),
})

export const oauthConsentRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)
  app.addHook('preValidation', async (request) => requirePageOrigin(deps.config, request))

  app.route({
    method: 'GET',
    url: '/oauth/authorizations/:authorization_id',
    exposeHeadRoute: false,
    schema: {
      ...schema,
      operationId: 'getAuthorizationDetails',
      summary: 'Request of an application, for the page that asks the user',
      description: 'One that an earlier consent covers is approved at once.',
      params: Params,
      response: { 200: Type.Union([AuthorizationDetails, RedirectUrl]), ...errorResponses(400, 401, 403, 404) },
    },
    handler: async (request) => {
      const caller = requireLiveSession(request)
      const viewed = await viewAuthorization(deps, request.log, caller, request.params.authorization_id)
      if ('redirectUrl' in viewed) return { redirect_url: viewed.redirectUrl }
      return authorizationDetails(deps, caller.user, viewed)
    },
  })

  app.route({
    method: 'POST',
    url: '/oauth/authorizations/:authorization_id/consent',
    schema: {
      ...schema,
      operationId: 'answerAuthorization',
      summary: 'Approves or denies the request',
      params: Params,
      body: Type.Object({ action: Type.Optional(choiceOf(['approve', 'deny'], { required: true })) }),
      response: { 200: RedirectUrl, ...errorResponses(400, 401, 403, 404, 413) },
    },
    handler: async (request) => {
      const { action } = request.body
      if (action !== 'approve' && action !== 'deny') {
        throw apiError('validation_failed', { message: "action must be 'approve' or 'deny'" })
      }
      const caller = requireLiveSession(request)
      const { authorization_id: id } = request.params
      return { redirect_url: await answerAuthorization(deps, request.log, caller, id, action) }
    },
  })
}

/** Refuses scripts of pages that no redirect may lead to: they hold no consent page. */
function requirePageOrigin({ siteUrl, redirectAllowList: allowList }: Config, { headers: { origin } }: FastifyRequest) {
  if (origin === undefined) return
  const isKnown = [origin, `${origin}/`].some((target) => isPermitted(target, { siteUrl, allowList }))
  if (!isKnown) throw apiError('validation_failed', { message: 'unauthorized request origin' })
}
