import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Deps } from '../../../deps.ts'
import { CONSUMES, Parameter } from '../../../http/bodies/oauth-body.ts'
import { oauthErrors } from '../../../http/bodies/oauth-shapes.ts'
import {
  clientFields,
  countingFailures,
  countingUnknown,
  limitDocuments,
  limitUnvouched,
  presentedClient,
  verifyClient,
} from '../../../http/caller/authenticate-client.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { describeToken, findNamed, readToken } from './introspect-token.ts'

const Introspection = Type.Object(
  { active: Type.Boolean() },
  { title: 'OAuthIntrospection', additionalProperties: true, description: 'Claims of an active token.' },
)

/** POST /oauth/introspect (RFC 7662). `token_type_hint` is not needed: a token shows what it is. */
export const introspectRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/oauth/introspect',
    schema: {
      operationId: 'introspectOAuthToken',
      tags: ['OAuth server'],
      summary: 'Describes a token to its confidential client, or to the server of its resource',
      consumes: CONSUMES,
      body: Type.Object({ token: Parameter, token_type_hint: Parameter, ...clientFields }),
      response: { 200: Introspection, ...oauthErrors(429) },
    },
    handler: async (request, reply) => {
      const { token } = request.body
      if (!token) throw oauthError('invalid_request', { message: 'token is required' })
      const named = await readToken(deps, token)
      const { client, ...found } = await countingFailures(deps, request, async () => {
        const presented = presentedClient(request)
        await limitDocuments(deps, request, presented)
        const all = await findNamed(deps, presented.clientId, named, countingUnknown(deps, request))
        return { ...all, client: await verifyClient(deps, request, presented, all.client) }
      })
      await limitUnvouched(deps, request, client)
      return reply.header('cache-control', 'no-store').send(describeToken(deps, client, named, found))
    },
  })
}
