import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { UUID } from '../db/uuid.ts'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { isBelowUser } from '../factors/assurance.ts'
import { callerOf, requireLiveSession } from '../http/authenticate.ts'
import { acceptLanguageOf } from '../http/mail-context.ts'
import { Empty, errorResponses } from '../http/shapes.ts'
import { unlinkIdentity } from '../identities/unlink-identity.ts'
import type { LiveCaller } from '../sessions/caller.ts'
import { AuthorizeQuery, readOrder } from './authorize.routes.ts'
import { addressToBegin } from './begin-sign-in.ts'

const security = [{ user: [] }]

/** Linking accounts at providers to one's own, and taking them off; in the scope of requireUser. */
export const ownIdentitiesRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  // Before everything else that can be wrong with the request, but after who asks.
  app.addHook('preValidation', async () => {
    if (!deps.config.external.manualLinking) throw apiError('manual_linking_disabled')
  })

  app.route({
    method: 'GET',
    url: '/user/identities/authorize',
    schema: {
      tags: ['external sign-in'],
      summary: 'Sends the browser to a provider, whose account becomes one more of the user',
      security,
      querystring: AuthorizeQuery,
      response: {
        200: Type.Object({ url: Type.String({ description: 'With skip_http_redirect=true.' }) }),
        302: Type.Null(),
        ...errorResponses(400, 401, 403, 404, 429),
      },
    },
    handler: async (request, reply) => {
      const { user, session } = requireLinkable(request)
      await deps.limits.byAddress(request, 'authorize')
      const linking = { userId: user.id, sessionId: session.id }
      const order = { ...readOrder(deps, request), audience: user.aud, inviteTokenHash: null, linking }
      // No navigation sends a token along: this is a script, whose browser has to come by itself to be bound.
      const url = addressToBegin(deps, order)
      if (request.query.skip_http_redirect === 'true') return { url }
      return reply.redirect(url, 302)
    },
  })

  app.route({
    method: 'DELETE',
    url: '/user/identities/:identity_id',
    schema: {
      tags: ['external sign-in'],
      summary: 'Takes an identity off the user',
      security,
      params: Type.Object({ identity_id: Type.String() }),
      response: { 200: Empty, ...errorResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: async (request) => {
      const { identity_id: identityId } = request.params
      if (!UUID.test(identityId)) {
        throw apiError('validation_failed', { status: 404, message: 'identity_id must be an UUID' })
      }
      const { user, audience } = callerOf(request)
      const wanted = request.headers['x-jwt-aud'] || audience
      if (wanted !== audience) throw apiError('unexpected_audience')
      requireLinkable(request)
      const order = { userId: user.id, identityId, acceptLanguage: acceptLanguageOf(request) }
      await deps.db.transaction().execute((trx) => unlinkIdentity(deps, trx, request.log, order))
      return {}
    },
  })
}

/** A way to sign in is as good as a password: whoever has a second factor shows it before one comes or goes. */
function requireLinkable(request: FastifyRequest): LiveCaller {
  const caller = requireLiveSession(request)
  if (isBelowUser(caller.user, caller.session)) throw apiError('insufficient_aal')
  return caller
}
