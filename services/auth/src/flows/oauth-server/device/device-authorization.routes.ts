// Requests of devices without a browser (RFC 8628). Rules: core/oauth-server/devices.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { beginDevice } from '../../../core/oauth-server/devices/begin-device.ts'
import { DEVICE_GRANT } from '../../../core/oauth-server/devices/redeem-device-code.ts'
import { requestedResources } from '../../../core/oauth-server/requested-resources.ts'
import { requestedScopes } from '../../../core/oauth-server/requested-scopes.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { CONSUMES, Parameter, ResourceParameter, resourcesIn } from '../../../http/bodies/oauth-body.ts'
import { oauthErrors } from '../../../http/bodies/oauth-shapes.ts'
import { authenticateClient, clientFields } from '../../../http/caller/authenticate-client.ts'
import { clientOf } from '../../../http/limits/client.ts'
import { oauthError } from '../../../oauth-errors.ts'

/** POST /oauth/device_authorization (RFC 8628): a device without a browser begins. The page is a hosted one. */
export const deviceAuthorizationRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/oauth/device_authorization',
    schema: {
      operationId: 'authorizeDevice',
      tags: ['OAuth server'],
      summary: 'Begins the sign-in of a device, whose user enters a code on a hosted page',
      consumes: CONSUMES,
      body: Type.Object({ scope: Parameter, resource: ResourceParameter, ...clientFields }),
      response: {
        200: Type.Object(
          {
            device_code: Type.String({ description: 'Code for the token endpoint.' }),
            user_code: Type.String({ description: 'Code for the user, in two groups of four letters.' }),
            verification_uri: Type.String({ description: 'Page on which the user enters the code.' }),
            verification_uri_complete: Type.String({ description: 'The same page with the code, for QR codes.' }),
            expires_in: Type.Integer({ description: 'Seconds.' }),
            interval: Type.Integer({ description: 'Least seconds between two requests at the token endpoint.' }),
          },
          { title: 'DeviceAuthorization' },
        ),
        ...oauthErrors(404, 429),
      },
    },
    handler: async (request, reply) => {
      if (!deps.config.pages.enabled) throw apiError('feature_disabled', { message: 'Hosted pages are disabled' })
      await deps.limits.byAddress(request, 'oauthAuthorize')
      const client = await authenticateClient(deps, request)
      if (!client.grant_types.includes(DEVICE_GRANT)) throw oauthError('unauthorized_client')
      const scopes = await requestedScopes(deps, client, request.body.scope)
      const resources = requestedResources(deps.config, resourcesIn(request.body.resource))
      const begun = await beginDevice(deps, client, { scopes, resources }, clientOf(request, deps.config))
      return reply.header('cache-control', 'no-store').send(begun)
    },
  })
}
