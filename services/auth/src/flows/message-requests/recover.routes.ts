import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import { requestMessage } from '../../core/verification-messages/message-request.ts'
import type { Deps } from '../../deps.ts'
import { requireProvider } from '../../http/bodies/address.ts'
import { Empty, hookedResponses, NeededField, pkceFields, RedirectQuery } from '../../http/bodies/shapes.ts'
import { captchaFields } from '../../http/caller/captcha.ts'
import { limitKeyOf } from '../../http/limits/client.ts'
import { sendRecovery } from './answer-message-request.ts'
import { requesterOf } from './requester.http.ts'

export const recoverRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps
  app.route({
    method: 'POST',
    url: '/recover',
    schema: {
      operationId: 'recoverPassword',
      tags: ['sign-in'],
      summary: 'Sends a link to set a new password with',
      querystring: RedirectQuery,
      requestHeaders: ['X-JWT-AUD'],
      body: Type.Object({ email: Type.Optional(NeededField), ...pkceFields, ...captchaFields }),
      response: { 200: Empty, ...hookedResponses(400, 413, 422, 429) },
    },
    handler: async (request) => {
      await limits.byAddress(request, 'recover')
      await deps.captcha.check(request)
      requireProvider(config, 'email')
      const email = parseEmail(request.body.email ?? '')
      const input = {
        type: 'recovery',
        address: { channel: 'email', value: email },
        ...requesterOf(request, config),
        clientAddress: limitKeyOf(request, config),
        pkce: parsePkce(request.body),
      } as const
      await requestMessage(deps, input, (queued) => sendRecovery(deps, request.log, queued))
      return {}
    },
  })
}
