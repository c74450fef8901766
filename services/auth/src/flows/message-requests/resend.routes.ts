import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inWords } from '@services/common/list-in-words'
import { Type } from 'typebox'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import { type MessageRequest, requestMessage } from '../../core/verification-messages/message-request.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { oneAddress, refuseBoth, requireProvider } from '../../http/bodies/address.ts'
import { choiceOf, Field, hookedResponses, pkceFields, RedirectQuery } from '../../http/bodies/shapes.ts'
import { captchaFields } from '../../http/caller/captcha.ts'
import { requesterOf } from './requester.http.ts'
import { sendAgain } from './send-again.ts'

/** Each `type`: the request it becomes, the kind of address it requires, and whether it sends a link. */
const TYPES: Record<string, { request: MessageRequest['type']; needs?: 'email' | 'phone'; isLink: boolean }> = {
  signup: { request: 'confirmation', needs: 'email', isLink: true },
  email_change: { request: 'email_change', isLink: true },
  sms: { request: 'confirmation', needs: 'phone', isLink: false },
  phone_change: { request: 'phone_change', isLink: false },
}

const ResendAnswer = Type.Object({
  message_id: Type.String({ description: 'Id of the message in GET /admin/messages, if there was one to send.' }),
})

/** POST /resend: sends a pending confirmation again. The answer has a `message_id` whether or not one was pending. */
export const resendRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps
  app.route({
    method: 'POST',
    url: '/resend',
    schema: {
      operationId: 'resend',
      tags: ['sign-up'],
      summary: 'Sends a pending confirmation again',
      querystring: RedirectQuery,
      requestHeaders: ['X-JWT-AUD'],
      body: Type.Object({
        type: Type.Optional(choiceOf(Object.keys(TYPES), { required: true })),
        email: Type.Optional(Field),
        phone: Type.Optional(Field),
        ...pkceFields,
        ...captchaFields,
      }),
      response: { 200: ResendAnswer, ...hookedResponses(400, 413, 422, 429) },
    },
    handler: async (request) => {
      await limits.byAddress(request, 'resend')
      await deps.captcha.check(request)
      const { type = '', email = '', phone = '' } = request.body
      const sent = Object.hasOwn(TYPES, type) ? TYPES[type] : undefined
      const pkce = !sent || sent.isLink ? parsePkce(request.body) : undefined
      if (!sent) throw apiError('validation_failed', { message: `type must be ${inWords(Object.keys(TYPES), 'or')}` })
      if (sent.needs === 'email' && email === '') {
        throw apiError('validation_failed', { message: 'Type provided requires an email address' })
      }
      if (sent.needs === 'phone' && phone === '') {
        throw apiError('validation_failed', { message: 'Type provided requires a phone number' })
      }
      refuseBoth({ email, phone })
      if (email !== '') requireProvider(config, 'email')
      if (phone !== '') requireProvider(config, 'phone')
      const address = oneAddress({ email, phone })
      const input = { type: sent.request, address, ...requesterOf(request, config), pkce }
      const messageId = await requestMessage(deps, input, (queued) => sendAgain(deps, request.log, queued))
      return { message_id: messageId }
    },
  })
}
