import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { recordSignIn } from '../../core/audit/sign-in-attempt.ts'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import { SessionShape } from '../../core/sessions/issue-tokens.ts'
import { FreeForm } from '../../core/users/metadata.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { requireProvider } from '../../http/bodies/address.ts'
import { errorResponses, hookedResponses, pkceFields, RedirectQuery } from '../../http/bodies/shapes.ts'
import { requestAudience } from '../../http/caller/authenticate.ts'
import { captchaFields } from '../../http/caller/captcha.ts'
import { clientOf } from '../../http/limits/client.ts'
import { mailContextOf } from '../../http/pages/mail-context.ts'
import { AnswerBody, ChallengeShape } from './passkeys.routes.ts'
import { beginSignUp, signUpWithPasskey } from './sign-up-with-passkey.ts'

const fields = {
  email: Type.Optional(
    Type.String({ description: 'The browser shows it; it is the account’s once its owner opens the mailed link.' }),
  ),
  data: Type.Optional(FreeForm),
}

export const passkeySignUpRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps
  app.addHook('onRequest', async () => {
    if (!config.passkeys.signUp) throw apiError('passkey_disabled')
  })

  /** Reads whom to sign up. Throws signup_disabled, email_provider_disabled and validation_failed. */
  function personOf({ email = '', data = {} }: { email?: string; data?: Record<string, unknown> }) {
    if (config.signup.disabled) throw apiError('signup_disabled')
    if (email === '') return { email: undefined, data }
    requireProvider(config, 'email')
    return { email: parseEmail(email), data }
  }

  app.route({
    method: 'POST',
    url: '/passkeys/signup/options',
    schema: {
      operationId: 'beginPasskeySignUp',
      tags: ['passkeys'],
      summary: 'Begins a sign-up with a passkey in place of a password',
      body: Type.Union([Type.Object({ ...fields, ...captchaFields }), Type.Null()]),
      response: { 200: ChallengeShape, ...errorResponses(400, 404, 413, 422, 429) },
    },
    handler: async (request) => {
      await limits.byAddress(request, 'passkeyOptions')
      await deps.captcha.check(request)
      return beginSignUp(deps, personOf(request.body ?? {}))
    },
  })

  app.route({
    method: 'POST',
    url: '/passkeys/signup/verify',
    schema: {
      operationId: 'signUpWithPasskey',
      tags: ['passkeys'],
      summary: 'Creates a user with the new passkey and signs it in; an address is added once its owner opens a link',
      querystring: RedirectQuery,
      body: Type.Object({ ...AnswerBody.properties, ...fields, ...pkceFields }),
      requestHeaders: ['X-JWT-AUD'],
      response: { 200: SessionShape, ...hookedResponses(400, 404, 413, 422, 429) },
    },
    handler: async (request) => {
      const { challenge_id: challengeId, credential } = request.body
      await limits.byAddress(request, request.body.email ? 'signup' : 'anonymous')
      const person = personOf(request.body)
      const audience = requestAudience(request, config.jwt)
      const context = mailContextOf(request, config)
      const client = clientOf(request, config)
      const given = { ...person, challengeId, credential, audience, context, client, pkce: parsePkce(request.body) }
      return recordSignIn(deps, request.log, { method: 'passkey', typed: '' }, () =>
        signUpWithPasskey(deps, request.log, given),
      )
    },
  })
}
