import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { parseChannel } from '../../adapters/sms/parse-channel.ts'
import { cutUser } from '../../core/oauth-server/scopes/cut-user.ts'
import { requireDataAlone } from '../../core/oauth-server/scopes/scoped-changes.ts'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import { ownBody } from '../../core/sessions/user-answers.ts'
import { FreeForm } from '../../core/users/metadata.ts'
import { parsePhone } from '../../core/users/phone-number.ts'
import { UserShape } from '../../core/users/user-shape.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import {
  ChannelField,
  errorResponses,
  Field,
  hookedResponses,
  pkceFields,
  RedirectQuery,
} from '../../http/bodies/shapes.ts'
import { callerOf, requireLiveSession } from '../../http/caller/authenticate.ts'
import { givenProof, ProofBody, proofFields } from '../../http/caller/given-proof.ts'
import { acceptLanguageOf, mailContextOf } from '../../http/pages/mail-context.ts'
import { deleteAccount } from './delete-account.ts'
import { updateAccount } from './update-account.ts'

const security = [{ user: [] }]
const CHANNELS = ['email', 'phone'] as const

export const userRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/user',
    schema: {
      operationId: 'getUser',
      tags: ['account'],
      summary: 'The user of the token',
      security,
      requestHeaders: ['X-JWT-AUD'],
      response: { 200: UserShape, ...errorResponses(400, 401, 403) },
    },
    handler: async (request) => {
      const { user, audience, session, scopes } = callerOf(request)
      const wanted = request.headers['x-jwt-aud'] || audience
      if (!audience || wanted !== audience) {
        throw apiError('validation_failed', { message: 'Token audience does not match request audience' })
      }
      return cutUser(await ownBody(deps, deps.db, user, session?.id), scopes)
    },
  })

  app.route({
    method: 'PUT',
    url: '/user',
    schema: {
      operationId: 'updateUser',
      tags: ['account'],
      summary: 'Changes the address, password and free-form data of the user',
      security,
      querystring: RedirectQuery,
      body: Type.Object({
        email: Type.Optional(Type.String({ description: '"" removes the address.' })),
        phone: Type.Optional(Type.String({ description: '"" removes the number.' })),
        password: Type.Optional(Field),
        ...proofFields,
        channel: Type.Optional(ChannelField),
        ...pkceFields,
        data: Type.Optional(FreeForm),
        app_metadata: Type.Optional(FreeForm),
      }),
      response: { 200: UserShape, ...hookedResponses(400, 401, 403, 413, 422, 429) },
    },
    handler: async (request) => {
      const caller = requireLiveSession(request)
      requireDataAlone(caller.scopes, request.body)
      await deps.limits.byAddress(request, 'user')
      const { email = '', phone = '', password, data, channel } = request.body
      const { app_metadata: appMetadata } = request.body
      const user = await updateAccount(deps, caller, {
        log: request.log,
        email: email === '' ? undefined : parseEmail(email),
        phone: phone === '' ? undefined : parsePhone(phone),
        removed: CHANNELS.filter((channel) => request.body[channel] === ''),
        password,
        data,
        appMetadata,
        ...givenProof(request, deps.config, request.body),
        context: mailContextOf(request, deps.config),
        pkce: parsePkce(request.body),
        smsChannel: parseChannel(deps.config.sms, channel),
      })
      return cutUser(await ownBody(deps, deps.db, user, caller.session.id), caller.scopes)
    },
  })

  app.route({
    method: 'DELETE',
    url: '/user',
    schema: {
      operationId: 'deleteUser',
      tags: ['account'],
      summary: 'Deletes the account of the user, where AUTH_SELF_DELETION_ENABLED is set',
      description:
        'Needs a sign-in of the last 15 minutes, the current password or a nonce. All of the user is deleted except the audit log and, until it is sent, a last mail. Issued access tokens are refused here from then on.',
      security,
      body: ProofBody,
      response: { 204: Type.Null(), ...errorResponses(400, 401, 403, 404, 413, 422, 429) },
    },
    // After the scope's check of the token, before the body.
    onRequest: async () => {
      if (!deps.config.signup.selfDeletion)
        throw apiError('feature_disabled', { message: 'Account deletion is disabled' })
    },
    handler: async (request, reply) => {
      const caller = requireLiveSession(request)
      await deps.limits.byAddress(request, 'user')
      const proof = givenProof(request, deps.config, request.body)
      await deleteAccount(deps, { caller, proof, log: request.log, acceptLanguage: acceptLanguageOf(request) })
      return reply.code(204).send(null)
    },
  })
}
