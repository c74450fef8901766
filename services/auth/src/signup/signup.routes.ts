import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Deps } from '../deps.ts'
import { apiError } from '../errors.ts'
import { requestAudience } from '../http/authenticate.ts'
import { clientOf } from '../http/client.ts'
import { redirectTarget } from '../http/redirect-target.ts'
import { errorResponses, Field, FreeForm } from '../http/shapes.ts'
import { requireStrongPassword } from '../passwords/require-strong-password.ts'
import { SessionShape } from '../sessions/session-shape.ts'
import { toUserBody, UserShape } from '../users/user-shape.ts'
import { signUpByEmail } from './signup.ts'
import { signUpAnonymously } from './signup-anonymously.ts'

const SignupBody = Type.Object({
  email: Type.Optional(Field),
  phone: Type.Optional(Field),
  password: Type.Optional(Field),
  data: Type.Optional(FreeForm),
  code_challenge: Type.Optional(Field),
  code_challenge_method: Type.Optional(Field),
})

export const signupRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps
  app.route({
    method: 'POST',
    url: '/signup',
    schema: {
      tags: ['sign-up'],
      summary: 'Registers a user by e-mail and password; without an address, anonymously',
      querystring: Type.Object({ redirect_to: Type.Optional(Type.String()) }),
      body: SignupBody,
      response: {
        200: Type.Union([SessionShape, UserShape]),
        ...errorResponses(400, 413, 422, 429),
      },
    },
    // Two shapes under one status: serialised as built, because a union would be matched against both at run time.
    serializerCompiler: () => JSON.stringify,
    handler: async (request) => {
      const { email = '', phone = '', password = '', data = {} } = request.body
      const audience = requestAudience(request, config.jwt.audience)
      const client = clientOf(request, config.server.trustSbForwardedFor)
      if (email === '' && phone === '') {
        await limits.byAddress(request, 'anonymous')
        return signUpAnonymously(deps, { data, audience, client })
      }
      await limits.byAddress(request, 'signup')
      if (config.signup.disabled) throw apiError('signup_disabled')
      requireStrongPassword(password, config.passwords)
      if (email !== '' && phone !== '') {
        throw apiError('validation_failed', { message: 'Only an email address or phone number should be provided' })
      }
      if (phone !== '') throw apiError('phone_provider_disabled')
      if (request.body.code_challenge || request.body.code_challenge_method) {
        throw apiError('validation_failed', { message: 'The PKCE flow is not available yet' })
      }
      const redirectTo = redirectTarget(request, { siteUrl: config.siteUrl, allowList: config.redirectAllowList })
      const acceptLanguage = request.headers['accept-language']
      const result = await signUpByEmail(deps, request.log, {
        email,
        password,
        data,
        audience,
        redirectTo,
        acceptLanguage,
        client,
      })
      return 'session' in result ? result.session : toUserBody(result.user)
    },
  })
}
