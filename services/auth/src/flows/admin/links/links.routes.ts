// The links of mails that an admin requests: an invitation is sent, a generated link is returned instead.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inWords } from '@services/common/list-in-words'
import { Type } from 'typebox'
import { parseEmail } from '../../../adapters/mail/email-address.ts'
import { parsePkce } from '../../../core/one-time-tokens/pkce.ts'
import { isPermitted } from '../../../core/redirects/allowed-targets.ts'
import { registeredBody } from '../../../core/sessions/user-answers.ts'
import { FreeForm } from '../../../core/users/metadata.ts'
import { UserShape } from '../../../core/users/user-shape.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { requireProvider } from '../../../http/bodies/address.ts'
import {
  choiceOf,
  Field,
  hookedResponses,
  NeededField,
  pkceFields,
  RedirectQuery,
} from '../../../http/bodies/shapes.ts'
import { adminOf } from '../../../http/caller/admin-only.ts'
import { adminAudience } from '../../../http/caller/authenticate.ts'
import { subjectOf } from '../../../http/caller/subject.ts'
import { mailContextOf } from '../../../http/pages/mail-context.ts'
import { GENERATED_TYPES, generateLink } from './generate-link.ts'
import { inviteUser } from './invite-user.ts'
import { recoverUser } from './recover-user.ts'

export const inviteRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/invite',
    schema: {
      operationId: 'inviteUser',
      tags: ['admin'],
      summary: 'Invites a user by mail',
      security: [{ admin: [] }],
      querystring: RedirectQuery,
      requestHeaders: ['X-JWT-AUD'],
      body: Type.Object({ email: Type.Optional(NeededField), data: Type.Optional(FreeForm), ...pkceFields }),
      response: { 200: UserShape, ...hookedResponses(400, 401, 403, 413, 422, 429) },
    },
    handler: async (request) => {
      const { email = '', data = {} } = request.body
      const user = await inviteUser(deps, request.log, adminOf(request), {
        email: parseEmail(email),
        data,
        pkce: parsePkce(request.body),
        audience: adminAudience(request, deps.config.jwt),
        context: mailContextOf(request, deps.config),
      })
      return registeredBody(deps, deps.db, user)
    },
  })
}

/** Operations on the user of the path. */
export const recoverUserRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/admin/users/:user_id/recover',
    schema: {
      operationId: 'adminRecoverUser',
      tags: ['admin'],
      summary: 'Sends a user a link to set a new password with',
      security: [{ admin: [] }],
      params: Type.Object({ user_id: Type.String() }),
      querystring: RedirectQuery,
      response: { 204: Type.Null(), ...hookedResponses(400, 401, 403, 404, 413, 422, 429) },
    },
    handler: async (request, reply) => {
      requireProvider(deps.config, 'email')
      // The mail has the language of the user, not of the admin.
      const context = { ...mailContextOf(request, deps.config), acceptLanguage: undefined }
      await recoverUser(deps, request.log, adminOf(request), { user: subjectOf(request), context })
      return reply.code(204).send(null)
    },
  })
}

const GeneratedLink = Type.Object(
  {
    ...UserShape.properties,
    action_link: Type.String({ description: 'Link that the mail would have.' }),
    email_otp: Type.String(),
    hashed_token: Type.String({ description: '`token_hash` of POST /verify.' }),
    verification_type: Type.String(),
    redirect_to: Type.String(),
  },
  { title: 'GeneratedLink' },
)

export const generateLinkRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config } = deps
  app.route({
    method: 'POST',
    url: '/admin/generate_link',
    schema: {
      operationId: 'adminGenerateLink',
      tags: ['admin'],
      summary: 'Makes the link of a mail without sending it',
      description:
        'With `code_challenge` the link gives its browser a code, which the holder of the verifier exchanges at POST /token.',
      security: [{ admin: [] }],
      querystring: RedirectQuery,
      requestHeaders: ['X-JWT-AUD'],
      body: Type.Object({
        type: Type.Optional(choiceOf(GENERATED_TYPES, { required: true })),
        email: Type.Optional(NeededField),
        new_email: Type.Optional(Field),
        password: Type.Optional(Field),
        data: Type.Optional(FreeForm),
        redirect_to: Type.Optional(Field),
        ...pkceFields,
      }),
      response: { 200: GeneratedLink, ...hookedResponses(400, 401, 403, 404, 413, 422) },
    },
    handler: async (request) => {
      const {
        email = '',
        new_email: newEmail = '',
        password = '',
        data = {},
        redirect_to: redirectTo = '',
      } = request.body
      const address = parseEmail(email)
      const type = GENERATED_TYPES.find((each) => each === request.body.type)
      if (!type) throw apiError('validation_failed', { message: `type must be ${inWords(GENERATED_TYPES, 'or')}` })
      const rules = { siteUrl: config.siteUrl, allowList: config.redirectAllowList }
      const context = mailContextOf(request, config)
      const link = await generateLink(deps, request.log, adminOf(request), {
        type,
        email: address,
        newEmail,
        password,
        data,
        pkce: parsePkce(request.body),
        audience: adminAudience(request, config.jwt),
        context: isPermitted(redirectTo, rules) ? { ...context, redirectTo } : context,
      })
      return { ...(await registeredBody(deps, deps.db, link.user)), ...link.properties }
    },
  })
}
