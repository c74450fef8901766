// Endpoint at which applications begin: GET and POST /oauth/authorize. The rule: until client and redirect address are
// proven, failures are answered here, and all later ones go back to the application. Consent: consent.routes.ts.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { inDocument } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { CONSENT_PATH } from '../../../config/pages/page-paths.ts'
import type { Config } from '../../../config.ts'
import { answerParameters } from '../../../core/oauth-server/authorizations/answer-address.ts'
import { takePushed } from '../../../core/oauth-server/authorizations/authorizations.store.ts'
import {
  findNamedClient,
  type GivenParameters,
  once,
  type RequestTarget,
  readRequest,
  readTarget,
  responseModeOf,
} from '../../../core/oauth-server/authorizations/read-request.ts'
import { REQUEST_URI, storeRequest } from '../../../core/oauth-server/authorizations/store-request.ts'
import { withQuery } from '../../../core/redirects/redirect-url.ts'
import type { Deps } from '../../../deps.ts'
import { apiError } from '../../../errors.ts'
import { acceptForms } from '../../../http/bodies/form-body.ts'
import { describe, nameOf } from '../../../http/bodies/oauth-error-body.ts'
import { errorResponses, HtmlPage, Redirect } from '../../../http/bodies/shapes.ts'
import { countingUnknown } from '../../../http/caller/authenticate-client.ts'
import { requireOAuthServer } from '../../../http/caller/require-oauth-server.ts'
import { answerByRedirect, type PageAnswer } from '../../../http/pages/answer-by-redirect.ts'
import { acceptLanguageOf } from '../../../http/pages/mail-context.ts'
import type { Redirection } from '../../../http/pages/send-to.ts'
import { oauthError } from '../../../oauth-errors.ts'
import { postingPage, pressPage } from './posting-page.ts'

const parameter = (description: string) =>
  Type.Optional(
    Type.Union(
      [Type.String(), Type.Array(Type.String())],
      inDocument({ type: 'string', anyOf: undefined, description }),
    ),
  )

/** Parameters of a request; unknown ones are ignored (RFC 6749, section 3.1). */
export const AuthorizationParameters = Type.Object(
  {
    client_id: parameter('Id of the client. Required.'),
    request_uri: parameter('Request that was pushed to /oauth/par, in place of all below.'),
    redirect_uri: parameter('Registered address of the client, on loopback with any port. Required.'),
    response_type: parameter('`code`.'),
    response_mode: parameter('`query` or `form_post`.'),
    scope: parameter('Scopes, separated by spaces; the default ones if absent.'),
    state: parameter('Text that comes back, up to 4096 characters.'),
    nonce: parameter('Text for the id_token, up to 255 characters.'),
    resource: Type.Optional(
      Type.Union([Type.String(), Type.Array(Type.String())], {
        description: 'Resources (RFC 8707) that the tokens are for; the parameter may be repeated.',
      }),
    ),
    code_challenge: parameter('SHA-256 of the verifier in base64url (RFC 7636). Required.'),
    code_challenge_method: parameter('`S256`. Required.'),
    dpop_jkt: parameter('Thumbprint of the key that the code is bound to (RFC 9449).'),
    prompt: parameter('`none`, or of `login`, `consent`, `select_account`.'),
    max_age: parameter('Seconds since the last proof of the user, at most.'),
    login_hint: parameter('Address of the user, up to 320 characters.'),
    acr_values: parameter('`aal1` or `aal2`.'),
  },
  { additionalProperties: Type.Unknown() },
)

export const oauthAuthorizeRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  requireOAuthServer(app, deps.config)
  acceptForms(app)

  async function authorize(request: FastifyRequest, reply: FastifyReply, given: GivenParameters, status: 302 | 303) {
    await deps.limits.byAddress(request, 'oauthAuthorize')
    const { target, parameters, store } = await readBeginning(deps, given, countingUnknown(deps, request))
    const refuse = (error: ApiError): Redirection => ({
      location: refusalAddress(deps, target, parameters, error),
      status,
    })
    return answerByRedirect(deps.config, request, reply, {
      steps: async () => {
        try {
          return { location: withQuery(consentPage(deps.config), { authorization_id: await store() }), status }
        } catch (error) {
          const page = error instanceof ApiError && refusalPage(deps, request, target, parameters, error)
          if (!page) throw error
          return page
        }
      },
      failed: refuse,
    })
  }

  app.route({
    method: 'GET',
    url: '/oauth/authorize',
    exposeHeadRoute: false,
    schema: {
      operationId: 'authorizeClient',
      tags: ['OAuth server'],
      summary: 'Sends the browser to the consent page, which sends it back to the application',
      querystring: AuthorizationParameters,
      response: { 200: HtmlPage, 302: Redirect, ...errorResponses(400, 404, 429) },
    },
    handler: (request, reply) => authorize(request, reply, request.query as GivenParameters, 302),
  })

  app.route({
    method: 'POST',
    url: '/oauth/authorize',
    schema: {
      operationId: 'authorizeClientByForm',
      tags: ['OAuth server'],
      summary: 'The same by a form, for long requests',
      consumes: ['application/x-www-form-urlencoded'],
      body: AuthorizationParameters,
      response: { 200: HtmlPage, 303: Redirect, ...errorResponses(400, 404, 413, 429) },
    },
    handler: (request, reply) => authorize(request, reply, request.body as GivenParameters, 303),
  })
}

/** A request whose recipient is proven. */
interface Beginning {
  target: RequestTarget
  /** Parameters that shape the answer. */
  parameters: GivenParameters
  /** Stores the request, after its further checks; returns its id. */
  store: () => Promise<string>
}

/** Reads a request, or takes one that was pushed. Throws what is answered here and never redirected. */
async function readBeginning(
  deps: Deps,
  given: GivenParameters,
  countUnknown: () => Promise<void>,
): Promise<Beginning> {
  const uri = once(given, 'request_uri')
  if (uri !== undefined) return takeBeginning(deps, given, uri, countUnknown)
  const target = await readTarget(deps, given, countUnknown)
  const store = async () => {
    if (target.client.require_pushed_authorization_requests) {
      throw oauthError('invalid_request', { message: 'this client must push its requests' })
    }
    const read = await readRequest(deps, target, given)
    requirePage(deps, read)
    return storeRequest(deps, target, read, { status: 'pending', seconds: deps.config.oauthServer.requestSeconds })
  }
  return { target, parameters: given, store }
}

/** Takes a pushed request, once; its own parameters count, whatever else is there (RFC 9126, section 4). */
async function takeBeginning(
  deps: Deps,
  given: GivenParameters,
  uri: string,
  countUnknown: () => Promise<void>,
): Promise<Beginning> {
  const client = await findNamedClient(deps, once(given, 'client_id'), countUnknown)
  const now = deps.now()
  const taken = await takePushed(deps.db, {
    ...{ id: uri.replace(REQUEST_URI, ''), clientId: client.id, now },
    expiresAt: new Date(now.getTime() + deps.config.oauthServer.requestSeconds * 1000),
  })
  if (!taken) throw apiError('validation_failed', { message: 'request_uri is unknown, expired or used' })
  return {
    target: { client, redirectUri: taken.redirect_uri },
    parameters: { state: taken.state ?? undefined, response_mode: taken.response_mode },
    store: async () => {
      requirePage(deps, taken)
      return taken.id
    },
  }
}

/** Refuses requests that must not ask the user, unless our own pages, which have the user's session, answer them. */
function requirePage({ config }: Deps, { prompt }: { prompt: string | null }): void {
  if (prompt === 'none' && config.oauthServer.consentPath !== undefined) throw oauthError('interaction_required')
}

/** Returns the page that asks the user: the application's own at SITE_URL, else the hosted one. */
const consentPage = ({ oauthServer: { consentPath }, server, siteUrl }: Config): string =>
  consentPath === undefined ? server.externalUrl + CONSENT_PATH : siteUrl.replace(/\/+$/, '') + consentPath

const stateOf = ({ state }: GivenParameters): string | null => (typeof state === 'string' && state ? state : null)

const refusalOf = (deps: Deps, given: GivenParameters, error: ApiError) =>
  answerParameters(deps, stateOf(given), { error: nameOf(error), error_description: describe(error) })

const refusalAddress = (deps: Deps, { redirectUri }: RequestTarget, given: GivenParameters, error: ApiError) =>
  withQuery(redirectUri, refusalOf(deps, given, error))

/**
 * Page for an answer that no redirect brings: one that is posted, or one to an application that registered itself. To
 * that leads a press alone, because an attacker's address would make this service an open redirect (RFC 9700, 4.11.2).
 */
function refusalPage(
  deps: Deps,
  request: FastifyRequest,
  target: RequestTarget,
  given: GivenParameters,
  error: ApiError,
): PageAnswer | undefined {
  const isVouched = target.client.registration_type === 'manual'
  const language = acceptLanguageOf(request)
  if (isPosted(given, target)) {
    const page = postingPage(deps.config, language, target.redirectUri, refusalOf(deps, given, error))
    return { page: isVouched ? page : { ...page, scripts: [] } }
  }
  if (isVouched) return undefined
  return { page: pressPage(deps.config, language, refusalAddress(deps, target, given, error)) }
}

function isPosted(given: GivenParameters, { redirectUri }: RequestTarget): boolean {
  try {
    return responseModeOf(given, redirectUri) === 'form_post'
  } catch {
    return false
  }
}
