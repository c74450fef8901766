import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import {
  type GivenParameters,
  readRequest,
  readTarget,
} from '../../../core/oauth-server/authorizations/read-request.ts'
import { REQUEST_URI, storeRequest } from '../../../core/oauth-server/authorizations/store-request.ts'
import { publicIdOf } from '../../../core/oauth-server/find-client.ts'
import type { Deps } from '../../../deps.ts'
import { CONSUMES } from '../../../http/bodies/oauth-body.ts'
import { oauthErrors } from '../../../http/bodies/oauth-shapes.ts'
import { authenticateClient, clientFields } from '../../../http/caller/authenticate-client.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { AuthorizationParameters } from './authorize.routes.ts'

/** Time until the browser comes with the request, as RFC 9126, section 2.2, advises. */
const PUSHED_SECONDS = 60

/** POST /oauth/par: a client hands its request over itself, and the browser carries a name of it (RFC 9126). */
export const parRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/oauth/par',
    schema: {
      operationId: 'pushAuthorizationRequest',
      tags: ['OAuth server'],
      summary: 'Stores a request, which the browser begins by its request_uri once within a minute',
      consumes: CONSUMES,
      body: Type.Object(
        { ...AuthorizationParameters.properties, ...clientFields },
        { additionalProperties: Type.Unknown() },
      ),
      response: {
        201: Type.Object({ request_uri: Type.String(), expires_in: Type.Integer() }),
        ...oauthErrors(429),
      },
    },
    handler: async (request, reply) => {
      await deps.limits.byAddress(request, 'oauthPar')
      const client = await authenticateClient(deps, request)
      const given: GivenParameters = { ...(request.body as GivenParameters), client_id: publicIdOf(client) }
      if (given.request_uri) throw oauthError('invalid_request', { message: 'request_uri must not be pushed' })
      const target = await readTarget(deps, given)
      const read = await readRequest(deps, target, given)
      const id = await storeRequest(deps, target, read, { status: 'pushed', seconds: PUSHED_SECONDS })
      return reply.code(201).send({ request_uri: REQUEST_URI + id, expires_in: PUSHED_SECONDS })
    },
  })
}
