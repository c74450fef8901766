import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import {
  type GivenParameters,
  type ReadRequest,
  readRequest,
  readTarget,
} from '../../../core/oauth-server/authorizations/read-request.ts'
import { REQUEST_URI, storeRequest } from '../../../core/oauth-server/authorizations/store-request.ts'
import { publicIdOf } from '../../../core/oauth-server/find-client.ts'
import type { Deps } from '../../../deps.ts'
import { CONSUMES } from '../../../http/bodies/oauth-body.ts'
import { oauthErrors } from '../../../http/bodies/oauth-shapes.ts'
import { authenticateClient, clientFields } from '../../../http/caller/authenticate-client.ts'
import { provenKey } from '../../../http/caller/proven-key.ts'
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
      requestHeaders: ['DPoP'],
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
      const read = await withProvenKey(deps, request, await readRequest(deps, target, given))
      const id = await storeRequest(deps, target, read, { status: 'pushed', seconds: PUSHED_SECONDS })
      return reply.code(201).send({ request_uri: REQUEST_URI + id, expires_in: PUSHED_SECONDS })
    },
  })
}

/** Binds the code to the key of a DPoP header, which must be that of `dpop_jkt` (RFC 9449, section 10.1). */
async function withProvenKey(deps: Deps, request: FastifyRequest, read: ReadRequest): Promise<ReadRequest> {
  const thumbprint = await provenKey(deps, request)
  if (thumbprint === null || thumbprint === read.dpop_thumbprint) return read
  if (read.dpop_thumbprint === null) return { ...read, dpop_thumbprint: thumbprint }
  throw oauthError('invalid_dpop_proof', { message: 'The key of the DPoP proof is not that of dpop_jkt' })
}
