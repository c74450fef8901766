// POST /otp and /magiclink. Limits: http/limits/rate-limit.ts and core/verification-messages/message-request.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { parseChannel } from '../../adapters/sms/parse-channel.ts'
import { admitLater } from '../../core/identities/admit-user.ts'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import { FreeForm, requireModestMetadata } from '../../core/users/metadata.ts'
import { requestMessage } from '../../core/verification-messages/message-request.ts'
import type { Metadata } from '../../db/tables.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { oneAddress, refuseBoth, requireAddress, requireProvider } from '../../http/bodies/address.ts'
import {
  ChannelField,
  Empty,
  Field,
  hookedResponses,
  NeededField,
  pkceFields,
  RedirectQuery,
} from '../../http/bodies/shapes.ts'
import { captchaFields } from '../../http/caller/captcha.ts'
import { limitKeyOf } from '../../http/limits/client.ts'
import { requesterOf } from './requester.http.ts'
import { sendSignIn, signInAccount } from './send-sign-in.ts'

const SignInBody = Type.Object({
  email: Type.Optional(Field),
  data: Type.Optional(FreeForm),
  ...pkceFields,
  ...captchaFields,
})
const OtpBody = Type.Object({
  ...SignInBody.properties,
  phone: Type.Optional(Field),
  channel: Type.Optional(ChannelField),
  create_user: Type.Optional(
    Type.Boolean({ description: 'Whether an unknown address becomes an account.', default: true }),
  ),
})
type OtpBody = Type.Static<typeof OtpBody>

const OtpAnswer = Type.Object({
  message_id: Type.Optional(
    Type.String({ description: 'By phone: id of the message in GET /admin/messages, if there was one to send.' }),
  ),
})

/**
 * POST /otp and the older POST /magiclink: a link or code to sign in with. Known and unknown addresses get the same
 * answer (design.md 5.7). With `create_user` false or sign-ups closed, nothing is sent to unknown ones.
 */
export const otpRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps

  async function requestSignIn(request: FastifyRequest, body: OtpBody): Promise<string> {
    const { data = {}, create_user: createUser = true } = body
    const pkce = parsePkce(body)
    const address = oneAddress(body)
    const smsChannel = parseChannel(config.sms, body.channel)
    requireModestMetadata(data, config.signup.dataMaxBytes)
    const requester = requesterOf(request, config)
    const admit = async (claimed: Metadata) => {
      const account = signInAccount(deps, { address, data: claimed, audience: requester.audience })
      return (await admitLater(deps, request.log, account)) ? account.user.id : undefined
    }
    const input = {
      type: 'sign_in',
      address,
      ...requester,
      clientAddress: limitKeyOf(request, config),
      pkce,
      smsChannel,
      createUser,
      data,
      ...(createUser && !config.signup.disabled && { admit }),
    } as const
    return requestMessage(deps, input, (queued) => sendSignIn(deps, request.log, queued))
  }

  app.route({
    method: 'POST',
    url: '/otp',
    schema: {
      operationId: 'sendOtp',
      tags: ['sign-in'],
      summary: 'Sends a link or code to sign in with',
      querystring: RedirectQuery,
      requestHeaders: ['X-JWT-AUD'],
      body: OtpBody,
      response: { 200: OtpAnswer, ...hookedResponses(400, 413, 422, 429) },
    },
    handler: async (request) => {
      await limits.byAddress(request, 'otp')
      await deps.captcha.check(request)
      const { email = '', phone = '', channel = '' } = request.body
      refuseBoth({ email, phone })
      if (email !== '' && channel !== '') {
        throw apiError('validation_failed', { message: 'Channel should only be specified with a phone number' })
      }
      // Faults of the request come before disabled features (contract/auth-core.md 11.5).
      parsePkce(request.body)
      requireAddress({ email, phone })
      if (phone !== '') requireProvider(config, 'phone')
      else requireMagicLinks()
      const messageId = await requestSignIn(request, request.body)
      return phone === '' ? {} : { message_id: messageId }
    },
  })

  let hasWarned = false
  app.route({
    method: 'POST',
    url: '/magiclink',
    schema: {
      operationId: 'sendMagicLink',
      tags: ['sign-in'],
      summary: 'Sends a link to sign in with; deprecated in favour of /otp',
      deprecated: true,
      querystring: RedirectQuery,
      requestHeaders: ['X-JWT-AUD'],
      body: Type.Object({ ...SignInBody.properties, email: Type.Optional(NeededField) }),
      response: { 200: withHeaders(Empty, 'Deprecation', 'Link'), ...hookedResponses(400, 413, 422, 429) },
    },
    handler: async (request, reply) => {
      if (!hasWarned) request.log.warn('POST /magiclink is deprecated, use POST /otp; logged once')
      hasWarned = true
      // Date of deprecation (RFC 9745) and the replacement (RFC 8288).
      reply.header('deprecation', '@1763683200').header('link', '</otp>; rel="successor-version"')
      await limits.byAddress(request, 'magiclink')
      await deps.captcha.check(request)
      requireMagicLinks()
      if (!request.body.email) {
        throw apiError('validation_failed', { status: 422, message: 'A sign-in link requires an email' })
      }
      // Only what this endpoint documents: members of POST /otp mean nothing here.
      await requestSignIn(request, { ...request.body, phone: undefined, channel: undefined, create_user: undefined })
      return {}
    },
  })

  function requireMagicLinks() {
    requireProvider(config, 'email', 422)
    if (!config.signup.magicLinks) throw apiError('email_provider_disabled', { status: 422 })
  }
}
