// POST /token: signing in and refreshing. The one rule: each grant is a file of its own, and the route reads the request for it.
// Tests: here, test/contract/token.test.ts, test/limits.test.ts. Read next: password-grant.ts, refresh-token-grant.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { counted } from '@services/common/telemetry/instruments'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { recordSignIn } from '../../core/audit/sign-in-attempt.ts'
import { requireFresh, requireSecondFactor } from '../../core/freshness/require-fresh.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import { SessionShape } from '../../core/sessions/issue-tokens.ts'
import { normalisePhone } from '../../core/users/phone-number.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { refuseBoth, requireProvider } from '../../http/bodies/address.ts'
import { choiceOf, errorResponses, Field } from '../../http/bodies/shapes.ts'
import { authenticate, requestAudience } from '../../http/caller/authenticate.ts'
import { captchaFields } from '../../http/caller/captcha.ts'
import { givenProof } from '../../http/caller/given-proof.ts'
import { clientOf, limitKeyOf } from '../../http/limits/client.ts'
import { mailContextOf } from '../../http/pages/mail-context.ts'
import { countRefresh } from '../../metrics.ts'
import { IdTokenFields, signInWithIdToken } from './id-token-grant.ts'
import { signInWithPassword } from './password-grant.ts'
import { exchangeAuthCode } from './pkce-grant.ts'
import { refreshSession } from './refresh-token-grant.ts'

const GRANTS = ['password', 'refresh_token', 'pkce', 'id_token']

/** Grants whose token or code already came from a sign-in. */
const CAPTCHA_EXEMPT = ['refresh_token', 'pkce', 'id_token']

export const tokenRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps

  async function requireLinkingCaller(request: FastifyRequest): Promise<LiveCaller> {
    const caller = await authenticate(request, deps)
    const { user, session } = caller
    if (!config.external.manualLinking) throw apiError('manual_linking_disabled')
    if (!session) throw apiError('session_not_found')
    const linking = { ...caller, session }
    requireSecondFactor(config, ['linking an identity'], user, session)
    // `nonce` in this body belongs to the id_token.
    await requireFresh(deps, linking, ['linking an identity'], givenProof(request, config, null))
    return linking
  }

  app.route({
    method: 'POST',
    url: '/token',
    schema: {
      operationId: 'signIn',
      tags: ['sign-in'],
      summary: 'Signs in with a password or the id_token of a provider, or exchanges a refresh token or a code',
      querystring: Type.Object({ grant_type: Type.Optional(choiceOf(GRANTS, { required: true })) }),
      body: Type.Object({
        email: Type.Optional(Field),
        phone: Type.Optional(Field),
        password: Type.Optional(Field),
        refresh_token: Type.Optional(Field),
        auth_code: Type.Optional(Field),
        code_verifier: Type.Optional(Field),
        ...IdTokenFields.properties,
        link_identity: Type.Optional(Type.Boolean({ description: "Links the token's account to the caller." })),
        ...captchaFields,
      }),
      requestHeaders: ['X-JWT-AUD'],
      response: { 200: SessionShape, ...errorResponses(400, 401, 403, 404, 413, 422, 429, 502) },
    },
    // Before the body is validated: clients probe with bodies of other grants.
    preValidation: async (request) => {
      if (!CAPTCHA_EXEMPT.includes(request.query.grant_type ?? '')) await deps.captcha.check(request)
      // Not implemented; clients know this answer from servers that have it disabled.
      if (request.query.grant_type === 'web3') throw apiError('web3_provider_disabled')
      if (!GRANTS.includes(request.query.grant_type ?? '')) {
        throw apiError('invalid_credentials', { message: 'unsupported_grant_type' })
      }
    },
    handler: async (request) => {
      const { email = '', phone = '', password = '', refresh_token: refreshToken = '' } = request.body
      await limits.byAddress(request, 'token')
      const client = clientOf(request, config)
      const clientAddress = limitKeyOf(request, config)
      if (request.query.grant_type === 'refresh_token') {
        return counted(countRefresh, () => refreshSession(deps, request.log, refreshToken, client))
      }
      if (request.query.grant_type === 'pkce') {
        const { auth_code: authCode = '', code_verifier: codeVerifier = '' } = request.body
        return recordSignIn(deps, request.log, { method: 'pkce', typed: '' }, () =>
          exchangeAuthCode(deps, request.log, { authCode, codeVerifier, client, clientAddress }),
        )
      }
      if (request.query.grant_type === 'id_token') {
        return recordSignIn(deps, request.log, { method: 'id_token', typed: '' }, async () =>
          signInWithIdToken(deps, request.log, {
            ...request.body,
            linkingCaller: request.body.link_identity ? await requireLinkingCaller(request) : undefined,
            audience: requestAudience(request, config.jwt),
            context: mailContextOf(request, config),
            client,
          }),
        )
      }
      refuseBoth({ email, phone })
      const channel = phone === '' ? 'email' : 'phone'
      requireProvider(config, channel, 422)
      if (email === '' && phone === '') throw apiError('validation_failed', { message: 'missing email or phone' })
      // Only normalised, not validated: a malformed address is an unknown one.
      const address = { channel, value: channel === 'email' ? email.toLowerCase() : normalisePhone(phone) } as const
      const audience = requestAudience(request, config.jwt)
      return recordSignIn(deps, request.log, { method: 'password', typed: address.value }, () =>
        signInWithPassword(deps, request.log, { address, password, audience, client, clientAddress }),
      )
    },
  })
}
