// Endpoints that applications call themselves, without a browser. Authentication: http/caller/authenticate-client.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Deps } from '../../../deps.ts'
import { CONSUMES, Parameter } from '../../../http/bodies/oauth-body.ts'
import { oauthErrors } from '../../../http/bodies/oauth-shapes.ts'
import { authenticateClient, clientFields, limitUnvouched } from '../../../http/caller/authenticate-client.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { revokeToken } from './revoke-token.ts'

/** POST /oauth/revoke (RFC 7009). `token_type_hint` is not needed: a token shows what it is. */
export const revokeRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/oauth/revoke',
    schema: {
      operationId: 'revokeOAuthToken',
      tags: ['OAuth server'],
      summary: 'Ends the session of a token of the client; answered alike for unknown tokens',
      consumes: CONSUMES,
      body: Type.Object({ token: Parameter, token_type_hint: Parameter, ...clientFields }),
      response: { 200: Type.Object({}), ...oauthErrors(429) },
    },
    handler: async (request) => {
      const client = await authenticateClient(deps, request)
      await limitUnvouched(deps, request, client)
      const { token } = request.body
      if (!token) throw oauthError('invalid_request', { message: 'token is required' })
      await revokeToken(deps, request.log, client, token)
      return {}
    },
  })
}
