import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { ActName } from '../../core/freshness/acts.ts'
import { performActs, requireFresh, requireSecondFactor } from '../../core/freshness/require-fresh.ts'
import { unlinkIdentity } from '../../core/identities/link-identity.ts'
import { deleteAuthCodes } from '../../core/one-time-tokens/auth-codes.store.ts'
import { endSessionsOfIdentity } from '../../core/sessions/end-sessions.store.ts'
import type { User } from '../../core/users/users.store.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { Empty, errorResponses, Redirect } from '../../http/bodies/shapes.ts'
import { callerOf, requireLiveSession } from '../../http/caller/authenticate.ts'
import { givenProof, ProofBody } from '../../http/caller/given-proof.ts'
import { acceptLanguageOf } from '../../http/pages/mail-context.ts'
import { AuthorizeQuery, readOrder } from './authorize.routes.ts'
import { addressToBegin } from './sign-in.ts'

const security = [{ user: [] }]
const LINKING: ActName[] = ['linking an identity']

export const ownIdentitiesRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  // After authentication and before all other checks of the request.
  app.addHook('preValidation', async () => {
    if (!deps.config.external.manualLinking) throw apiError('manual_linking_disabled')
  })

  app.route({
    method: 'GET',
    url: '/user/identities/authorize',
    schema: {
      operationId: 'beginLinkingIdentity',
      tags: ['external sign-in'],
      summary: 'Sends the browser to a provider to link its account to the user',
      security,
      querystring: AuthorizeQuery,
      requestHeaders: ['X-JWT-AUD'],
      response: {
        200: Type.Object({
          url: Type.String({ description: 'With skip_http_redirect=true: page whose button leads to the provider.' }),
        }),
        302: Redirect,
        ...errorResponses(400, 401, 403, 404, 429),
      },
    },
    handler: async (request, reply) => {
      const caller = requireLiveSession(request)
      const { user, session } = caller
      requireSecondFactor(deps, LINKING, user, session)
      // Takes no password: an address must not contain one.
      await requireFresh(deps, caller, LINKING, givenProof(request, deps.config, null))
      await deps.limits.byAddress(request, 'authorize')
      const linking = { userId: user.id, sessionId: session.id }
      const order = { ...readOrder(deps, request), audience: user.aud, inviteTokenHash: null, linking }
      // Only a script can send a token; its browser has to navigate to be bound to the attempt.
      const { settings } = await deps.providers.find(order.provider)
      const url = addressToBegin(deps, settings, order)
      if (request.query.skip_http_redirect === 'true') return { url }
      return reply.redirect(url, 302)
    },
  })

  app.route({
    method: 'DELETE',
    url: '/user/identities/:identity_id',
    schema: {
      operationId: 'unlinkIdentity',
      tags: ['external sign-in'],
      summary: 'Unlinks an identity from the user',
      security,
      params: Type.Object({ identity_id: Type.String() }),
      body: ProofBody,
      requestHeaders: ['X-JWT-AUD'],
      response: { 200: Empty, ...errorResponses(400, 401, 403, 404, 413, 422, 429) },
    },
    handler: async (request) => {
      const { identity_id: identityId } = request.params
      if (!UUID.test(identityId)) {
        throw apiError('validation_failed', { status: 404, message: 'identity_id must be an UUID' })
      }
      const { user, audience } = callerOf(request)
      const wanted = request.headers['x-jwt-aud'] || audience
      if (wanted !== audience) throw apiError('unexpected_audience')
      const caller = requireLiveSession(request)
      const proof = givenProof(request, deps.config, request.body)
      const order = { userId: user.id, identityId, acceptLanguage: acceptLanguageOf(request) }
      const find = (_: unknown, { identities }: User) => identities.find(({ id }) => id === identityId.toLowerCase())
      await performActs(deps, { caller, proof }, ['unlinking an identity'], find, async (trx, _, identity) => {
        await unlinkIdentity(deps, trx, request.log, order)
        if (!identity) return
        await endSessionsOfIdentity(trx, { userId: user.id, identity, exceptId: caller.session.id })
        await deleteAuthCodes(trx, user.id)
      })
      return {}
    },
  })
}
