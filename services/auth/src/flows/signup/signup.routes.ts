import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { parseChannel } from '../../adapters/sms/parse-channel.ts'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import { isMalformed } from '../../core/passwords/password-rules.ts'
import { requireStrongPassword } from '../../core/passwords/require-strong-password.ts'
import { SessionShape } from '../../core/sessions/issue-tokens.ts'
import { registeredBody } from '../../core/sessions/user-answers.ts'
import { FreeForm } from '../../core/users/metadata.ts'
import { UserShape } from '../../core/users/user-shape.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { oneAddress, refuseBoth, requireProvider } from '../../http/bodies/address.ts'
import { ChannelField, Field, hookedResponses, pkceFields, RedirectQuery } from '../../http/bodies/shapes.ts'
import { requestAudience } from '../../http/caller/authenticate.ts'
import { captchaFields } from '../../http/caller/captcha.ts'
import { clientOf, limitKeyOf, networkOf } from '../../http/limits/client.ts'
import { mailContextOf } from '../../http/pages/mail-context.ts'
import { signUp, signUpAnonymously } from './signup.ts'

export const signupRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps
  app.route({
    method: 'POST',
    url: '/signup',
    schema: {
      operationId: 'signUp',
      tags: ['sign-up'],
      summary: 'Registers a user by e-mail or phone and password; without an address, anonymously',
      querystring: RedirectQuery,
      body: Type.Object({
        email: Type.Optional(Field),
        phone: Type.Optional(Field),
        password: Type.Optional(Field),
        data: Type.Optional(FreeForm),
        channel: Type.Optional(ChannelField),
        ...pkceFields,
        ...captchaFields,
      }),
      requestHeaders: ['X-JWT-AUD'],
      response: { 200: Type.Union([SessionShape, UserShape]), ...hookedResponses(400, 413, 422, 429) },
    },
    // Two shapes under one status: serialised as built, because a union would be matched against both at run time.
    serializerCompiler: () => JSON.stringify,
    handler: async (request) => {
      await deps.captcha.check(request)
      const { email = '', phone = '', password = '', data = {} } = request.body
      const audience = requestAudience(request, config.jwt)
      const client = clientOf(request, config)
      if (email === '' && phone === '') {
        if (!config.signup.anonymous) throw apiError('anonymous_provider_disabled')
        await limits.byAddress(request, 'anonymous')
        return signUpAnonymously(deps, request.log, { data, audience, client })
      }
      await limits.byAddress(request, 'signup')
      if (config.signup.disabled) throw apiError('signup_disabled')
      // The reference reports a malformed password before an invalid address, and one that is easy to guess after it.
      const requireStrong = () => requireStrongPassword(deps, password, email)
      if (isMalformed(password, config.passwords)) await requireStrong()
      refuseBoth({ email, phone })
      const smsChannel = parseChannel(config.sms, phone === '' ? '' : request.body.channel)
      if (phone !== '' && request.body.code_challenge) {
        throw apiError('validation_failed', { message: 'PKCE not supported for phone signups' })
      }
      const pkce = parsePkce(request.body)
      requireProvider(config, email === '' ? 'phone' : 'email')
      const address = oneAddress({ email, phone })
      await requireStrong()
      const result = await signUp(deps, request.log, {
        address,
        password,
        data,
        audience,
        client,
        context: mailContextOf(request, config),
        pkce,
        network: networkOf(request, config),
        trustedNetwork: limitKeyOf(request, config),
        smsChannel,
      })
      return 'session' in result ? result.session : registeredBody(deps, deps.db, result.user)
    },
  })
}
