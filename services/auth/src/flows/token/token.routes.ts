// POST /token: signing in and refreshing. A grant is an entry of GRANTS, which reads the request, and a file.
// Tests: here, test/contract/token.test.ts, test/limits.test.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { withHeaders } from '@services/common/http/route-schema'
import { counted } from '@services/common/telemetry/instruments'
import type { FastifyRequest } from 'fastify'
import { type Static, type TObject, type TProperties, Type } from 'typebox'
import { withAsciiDomain } from '../../adapters/mail/email-address.ts'
import { recordSignIn } from '../../core/audit/sign-in-attempt.ts'
import { requireFresh, requireSecondFactor } from '../../core/freshness/require-fresh.ts'
import type { LiveCaller } from '../../core/sessions/caller.ts'
import { type SessionBody, SessionShape } from '../../core/sessions/issue-tokens.ts'
import type { Client } from '../../core/sessions/start-session.ts'
import { normalisePhone } from '../../core/users/phone-number.ts'
import { requireChains } from '../../core/web3/chains.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { refuseBoth, requireProvider } from '../../http/bodies/address.ts'
import { choiceOf, Field, hookedResponses } from '../../http/bodies/shapes.ts'
import { authenticate, requestAudience } from '../../http/caller/authenticate.ts'
import { captchaFields } from '../../http/caller/captcha.ts'
import { givenProof } from '../../http/caller/given-proof.ts'
import { DEVICE_HEADERS, DEVICE_TOKEN, withTrustedDevice } from '../../http/caller/trusted-device.ts'
import { clientOf, limitKeyOf } from '../../http/limits/client.ts'
import type { AddressLimit } from '../../http/limits/rate-limit.ts'
import { mailContextOf } from '../../http/pages/mail-context.ts'
import { countRefresh } from '../../metrics.ts'
import { IdTokenFields, signInWithIdToken } from './id-token-grant.ts'
import { signInWithPassword } from './password-grant.ts'
import { exchangeAuthCode } from './pkce-grant.ts'
import { refreshSession } from './refresh-token-grant.ts'
import { signInWithWeb3, Web3Fields } from './web3-grant.ts'

/** Parts of a request that every grant gets beside its own fields. */
interface GrantContext {
  deps: Deps
  request: FastifyRequest
  client: Client
  clientAddress: string | undefined
}

/** The part of a request that a sign-in by an external account needs, whatever proves the account. */
const externalRequestOf = async ({ deps, request, client }: GrantContext, isLink: boolean | undefined) => ({
  linkingCaller: isLink ? await requireLinkingCaller(deps, request) : undefined,
  audience: requestAudience(request, deps.config.jwt),
  context: mailContextOf(request, deps.config),
  client,
})

interface Grant<Fields extends TProperties> {
  fields: Fields
  /** Whether a client needs a captcha: it brings no token or code of an earlier sign-in. */
  needsCaptcha: boolean
  /** Limit per client address; `token` unless the grant has one of its own. */
  limit?: AddressLimit
  /** Whether it goes on with a session, which has its second factor already. */
  continues?: true
  /** Throws while the grant is disabled, before the body is read. */
  requireEnabled?(deps: Deps): void
  run(context: GrantContext, fields: Static<TObject<Fields>>): Promise<SessionBody>
}

const grant = <Fields extends TProperties>(given: Grant<Fields>) => given

const LinkIdentity = Type.Optional(
  Type.Boolean({ description: "Links the token's or wallet's account to the caller." }),
)

/** Grants by the `grant_type` of the query. */
const GRANTS = {
  password: grant({
    fields: { email: Type.Optional(Field), phone: Type.Optional(Field), password: Type.Optional(Field) },
    needsCaptcha: true,
    run({ deps, request, client, clientAddress }, { email = '', phone = '', password = '' }) {
      refuseBoth({ email, phone })
      const channel = phone === '' ? 'email' : 'phone'
      requireProvider(deps.config, channel, 422)
      if (email === '' && phone === '') throw apiError('validation_failed', { message: 'missing email or phone' })
      // Only normalised, not validated: a malformed address is an unknown one.
      const value = channel === 'email' ? withAsciiDomain(email).toLowerCase() : normalisePhone(phone)
      const address = { channel, value } as const
      const audience = requestAudience(request, deps.config.jwt)
      return recordSignIn(deps, request.log, { method: 'password', typed: address.value }, () =>
        signInWithPassword(deps, request.log, { address, password, audience, client, clientAddress }),
      )
    },
  }),
  refresh_token: grant({
    fields: { refresh_token: Type.Optional(Field) },
    needsCaptcha: false,
    continues: true,
    run: ({ deps, request, client }, { refresh_token: refreshToken = '' }) =>
      counted(countRefresh, () => refreshSession(deps, request.log, refreshToken, client)),
  }),
  pkce: grant({
    fields: { auth_code: Type.Optional(Field), code_verifier: Type.Optional(Field) },
    needsCaptcha: false,
    run: ({ deps, request, client, clientAddress }, { auth_code: authCode = '', code_verifier: codeVerifier = '' }) =>
      recordSignIn(deps, request.log, { method: 'pkce', typed: '' }, () =>
        exchangeAuthCode(deps, request.log, { authCode, codeVerifier, client, clientAddress }),
      ),
  }),
  id_token: grant({
    fields: {
      ...IdTokenFields.properties,
      link_identity: LinkIdentity,
    },
    needsCaptcha: false,
    run: (context, { link_identity: isLink, ...fields }) =>
      recordSignIn(context.deps, context.request.log, { method: 'id_token', typed: '' }, async () =>
        signInWithIdToken(context.deps, context.request.log, {
          ...fields,
          ...(await externalRequestOf(context, isLink)),
        }),
      ),
  }),
  web3: grant({
    fields: { ...Web3Fields.properties, link_identity: LinkIdentity },
    needsCaptcha: true,
    limit: 'web3',
    requireEnabled: ({ web3 }) => requireChains(web3),
    run: (context, { link_identity: isLink, ...fields }) =>
      recordSignIn(context.deps, context.request.log, { method: 'web3', typed: '' }, async () =>
        signInWithWeb3(context.deps, context.request.log, {
          ...fields,
          ...(await externalRequestOf(context, isLink)),
        }),
      ),
  }),
}

const grantOf = (name: keyof typeof GRANTS): Grant<TProperties> => GRANTS[name]
const isGrant = (name = ''): name is keyof typeof GRANTS => Object.hasOwn(GRANTS, name)

async function requireLinkingCaller(deps: Deps, request: FastifyRequest): Promise<LiveCaller> {
  const caller = await authenticate(request, deps)
  const { user, session } = caller
  if (!deps.config.external.manualLinking) throw apiError('manual_linking_disabled')
  if (!session) throw apiError('session_not_found')
  const linking = { ...caller, session }
  requireSecondFactor(deps, ['linking an identity'], user, session)
  // `nonce` in this body belongs to the id_token.
  await requireFresh(deps, linking, ['linking an identity'], givenProof(request, deps.config, null))
  return linking
}

export const tokenRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'POST',
    url: '/token',
    schema: {
      operationId: 'signIn',
      tags: ['sign-in'],
      summary:
        'Signs in with a password, an id_token of a provider or a wallet, or exchanges a refresh token or a code',
      querystring: Type.Object({ grant_type: Type.Optional(choiceOf(Object.keys(GRANTS), { required: true })) }),
      body: Type.Object({
        ...GRANTS.password.fields,
        ...GRANTS.refresh_token.fields,
        ...GRANTS.pkce.fields,
        ...GRANTS.id_token.fields,
        ...GRANTS.web3.fields,
        ...captchaFields,
      }),
      requestHeaders: ['X-JWT-AUD', DEVICE_TOKEN],
      response: {
        200: withHeaders(SessionShape, ...DEVICE_HEADERS),
        ...hookedResponses(400, 401, 403, 404, 413, 422, 429, 502),
      },
    },
    // Before the body is validated: clients probe with bodies of other grants.
    preValidation: async (request) => {
      const { grant_type: name } = request.query
      if (!isGrant(name) || GRANTS[name].needsCaptcha) await deps.captcha.check(request)
      if (!isGrant(name)) throw apiError('invalid_credentials', { message: 'unsupported_grant_type' })
      grantOf(name).requireEnabled?.(deps)
    },
    handler: async (request, reply) => {
      const { run, limit = 'token', continues } = grantOf(request.query.grant_type as keyof typeof GRANTS)
      await deps.limits.byAddress(request, limit)
      const clientAddress = limitKeyOf(request, deps.config)
      const signIn = (client: Client) => run({ deps, request, client, clientAddress }, request.body)
      return continues ? signIn(clientOf(request, deps.config)) : withTrustedDevice(deps, request, reply, signIn)
    },
  })
}
