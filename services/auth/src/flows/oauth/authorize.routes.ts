import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { inDocument } from '@services/common/http/route-schema'
import type { FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import type { ConfiguredProvider } from '../../adapters/oauth/configure-provider.ts'
import { hashLinkToken } from '../../core/one-time-tokens/one-time-token.ts'
import { findUserIdByLinkHash } from '../../core/one-time-tokens/one-time-tokens.store.ts'
import { parsePkce } from '../../core/one-time-tokens/pkce.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { errorResponses, HtmlPage, pkceFields, Redirect } from '../../http/bodies/shapes.ts'
import { requestAudience } from '../../http/caller/authenticate.ts'
import { bindBrowser } from '../../http/pages/attempt-cookie.ts'
import { redirectTarget } from '../../http/pages/redirect-target.ts'
import { sendTo } from '../../http/pages/send-to.ts'
import { addressToBegin, beginSignIn, type SignInOrder } from './sign-in.ts'

/** All other parameters are passed on to the provider: `prompt`, `login_hint`, `access_type` and the like. */
export const AuthorizeQuery = Type.Object(
  {
    provider: Type.Optional(Type.String({ description: 'Name of the provider.', ...inDocument({ required: true }) })),
    scopes: Type.Optional(Type.String({ description: 'Scopes in addition to the default ones.' })),
    redirect_to: Type.Optional(Type.String()),
    ...pkceFields,
    invite_token: Type.Optional(Type.String({ description: "Token of an invited user's link." })),
    skip_http_redirect: Type.Optional(Type.String(inDocument({ type: 'boolean' }))),
  },
  { additionalProperties: Type.String({ maxLength: 2048 }), maxProperties: 50 },
)

/** Our own parameters, and those that would change the request to the provider. */
const NOT_PASSED_ON = new Set([
  ...['provider', 'scopes', 'redirect_to', 'invite_token', 'skip_http_redirect'],
  ...['client_id', 'client_secret', 'redirect_uri', 'response_type', 'response_mode', 'state', 'scope'],
  ...['code_challenge', 'code_challenge_method', 'code_verifier', 'request', 'request_uri'],
])

export const authorizeRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  app.route({
    method: 'GET',
    url: '/authorize',
    exposeHeadRoute: false,
    schema: {
      operationId: 'beginExternalSignIn',
      tags: ['external sign-in'],
      summary: 'Sends the browser to a provider, which sends it back to /callback',
      querystring: AuthorizeQuery,
      requestHeaders: ['X-JWT-AUD'],
      response: { 200: HtmlPage, 302: Redirect, ...errorResponses(400, 404, 429) },
    },
    handler: async (request, reply) => {
      await deps.limits.byAddress(request, 'authorize')
      const order = readOrder(deps, request)
      const { invite_token: inviteToken } = request.query
      const inviteTokenHash = inviteToken ? hashLinkToken(inviteToken) : null
      if (inviteTokenHash && !(await findUserIdByLinkHash(deps.db, inviteTokenHash, ['confirmation']))) {
        throw apiError('user_not_found', { status: 404, message: 'User identified by token not found' })
      }
      const whole = { ...order, inviteTokenHash, linking: null }
      const provider = await deps.providers.find(order.provider)
      if (!isWhereProviderAnswers(provider, request)) {
        const location = addressToBegin(deps, provider.settings, whole)
        return sendTo(deps.config, request, reply, { location, status: 302 })
      }
      const begun = await beginSignIn(deps, provider, whole, () => deps.limits.countProviderRequest(request))
      bindBrowser(request, reply, deps.attemptKey, begun)
      return sendTo(deps.config, request, reply, { location: begun.url, status: 302 })
    },
  })
}

export function readOrder(
  { config }: Pick<Deps, 'config'>,
  request: FastifyRequest,
): Omit<SignInOrder, 'inviteTokenHash' | 'linking'> {
  const query = request.query as Record<string, string>
  return {
    provider: query.provider ?? '',
    scopes: query.scopes ?? '',
    parameters: Object.fromEntries(Object.entries(query).filter(([name]) => !NOT_PASSED_ON.has(name))),
    redirectTo: redirectTarget(request, { siteUrl: config.siteUrl, allowList: config.redirectAllowList }),
    audience: requestAudience(request, config.jwt),
    pkce: parsePkce(query),
  }
}

/** Reports whether a cookie of this host comes back with the provider's answer. */
function isWhereProviderAnswers({ settings }: ConfiguredProvider, request: FastifyRequest) {
  const [forwarded = ''] = String(request.headers['x-forwarded-host'] ?? '').split(',', 1)
  return URL.parse(`http://${forwarded.trim() || request.host}`)?.hostname === new URL(settings.redirectUri).hostname
}
