// POST /oauth/token: applications exchange codes, refresh tokens and their own proof for tokens. A grant is an entry of
// GRANTS and a file; authentication: http/caller/authenticate-client.ts. Tests: here.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inWords } from '@services/common/list-in-words'
import { counted } from '@services/common/telemetry/instruments'
import { type Static, Type } from 'typebox'
import { DEVICE_GRANT } from '../../../core/oauth-server/devices/redeem-device-code.ts'
import { TokenAnswer } from '../../../core/oauth-server/tokens/issue-client-tokens.ts'
import type { Deps } from '../../../deps.ts'
import { CONSUMES, Parameter, ResourceParameter, resourcesIn, wordsOf } from '../../../http/bodies/oauth-body.ts'
import { OAuthErrorShape, oauthErrors } from '../../../http/bodies/oauth-shapes.ts'
import { choiceOf } from '../../../http/bodies/shapes.ts'
import { authenticateClient, clientFields, limitUnvouched } from '../../../http/caller/authenticate-client.ts'
import { provenKey } from '../../../http/caller/proven-key.ts'
import { clientOf } from '../../../http/limits/client.ts'
import { countClientGrant, countRefresh } from '../../../metrics.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { exchangeCode } from './authorization-code-grant.ts'
import { issueMachineToken } from './client-credentials-grant.ts'
import { exchangeDeviceCode } from './device-code-grant.ts'
import type { Grant, GrantRequest } from './grant.ts'
import { refreshForClient } from './refresh-grant.ts'

const fields = {
  code: Parameter,
  device_code: Parameter,
  code_verifier: Parameter,
  redirect_uri: Parameter,
  refresh_token: Parameter,
  scope: Parameter,
  resource: ResourceParameter,
}

const Fields = Type.Object(fields)
type Fields = Static<typeof Fields>

const narrowing = ({ scope, resource }: Fields) => ({ scopes: wordsOf(scope), resources: resourcesIn(resource) })

/** Grants by `grant_type`. */
const GRANTS: Record<string, Grant<Fields>> = {
  authorization_code: (request, body) => exchangeCode(request, { ...body, ...narrowing(body) }),
  refresh_token: (request, body) =>
    counted(countRefresh, () => refreshForClient(request, { ...narrowing(body), refresh_token: body.refresh_token })),
  client_credentials: (request, body) => issueMachineToken(request, narrowing(body)),
  [DEVICE_GRANT]: (request, body) => exchangeDeviceCode(request, { ...body, ...narrowing(body) }),
}

export const oauthTokenRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/oauth/token',
    schema: {
      operationId: 'issueOAuthTokens',
      tags: ['OAuth server'],
      summary: 'Exchanges a code or a refresh token, or the proof of a client, for tokens',
      consumes: CONSUMES,
      requestHeaders: ['DPoP'],
      body: Type.Object({
        grant_type: Type.Optional(choiceOf(Object.keys(GRANTS), { required: true })),
        ...fields,
        ...clientFields,
      }),
      // A hook refuses with a status of its own.
      response: { 200: TokenAnswer, ...oauthErrors(429), default: OAuthErrorShape },
    },
    handler: async (request, reply) => {
      const { grant_type: type = '', ...body } = request.body
      if (type === '') throw oauthError('invalid_request', { message: 'grant_type is required' })
      const client = await authenticateClient(deps, request)
      await limitUnvouched(deps, request, client)
      const grant = Object.hasOwn(GRANTS, type) ? GRANTS[type] : undefined
      if (!grant) {
        const message = `grant_type must be ${inWords(Object.keys(GRANTS), 'or')}`
        throw oauthError('unsupported_grant_type', { message })
      }
      if (!client.grant_types.includes(type)) throw oauthError('unauthorized_client')
      const thumbprint = await provenKey(deps, request)
      if (thumbprint === null && client.dpop_bound_access_tokens) throw oauthError('invalid_dpop_proof')
      const origin = clientOf(request, deps.config)
      const granted: GrantRequest = { deps, log: request.log, client, origin, thumbprint }
      const answer = await grant(granted, body)
      if (type !== 'refresh_token') countClientGrant(client.id, type)
      return reply.header('cache-control', 'no-store').send(answer)
    },
  })
}
