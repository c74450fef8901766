import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { Type } from 'typebox'
import { recordSignIn } from '../../core/audit/sign-in-attempt.ts'
import { SessionShape } from '../../core/sessions/issue-tokens.ts'
import type { Deps } from '../../deps.ts'
import { errorResponses, hookedResponses } from '../../http/bodies/shapes.ts'
import { captchaFields } from '../../http/caller/captcha.ts'
import { DEVICE_HEADERS, DEVICE_TOKEN, withTrustedDevice } from '../../http/caller/trusted-device.ts'
import { acceptLanguageOf } from '../../http/pages/mail-context.ts'
import { AnswerBody, ChallengeShape } from './passkeys.routes.ts'
import { beginSignIn, signInWithPasskey } from './sign-in-with-passkey.ts'

export const passkeySignInRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/passkeys/authentication/options',
    schema: {
      operationId: 'beginPasskeySignIn',
      tags: ['passkeys'],
      summary: 'Begins a sign-in with a passkey; the browser knows whose',
      body: Type.Union([Type.Object(captchaFields), Type.Null()]),
      response: {
        200: ChallengeShape,
        ...errorResponses(400, 404, 413, 429),
      },
    },
    handler: async (request) => {
      await deps.limits.byAddress(request, 'passkeyOptions')
      await deps.captcha.check(request)
      return beginSignIn(deps)
    },
  })

  app.route({
    method: 'POST',
    url: '/passkeys/authentication/verify',
    schema: {
      operationId: 'signInWithPasskey',
      tags: ['passkeys'],
      summary: 'Signs in with the answer of a passkey',
      body: AnswerBody,
      requestHeaders: [DEVICE_TOKEN],
      response: { 200: withHeaders(SessionShape, ...DEVICE_HEADERS), ...hookedResponses(400, 403, 404, 413, 429) },
    },
    handler: async (request, reply) => {
      await deps.limits.byAddress(request, 'passkeySignIn')
      const { challenge_id: challengeId, credential } = request.body
      const given = { challengeId, credential, acceptLanguage: acceptLanguageOf(request) }
      return withTrustedDevice(deps, request, reply, (client) =>
        recordSignIn(deps, request.log, { method: 'passkey', typed: '' }, () =>
          signInWithPasskey(deps, request.log, { ...given, client }),
        ),
      )
    },
  })
}
