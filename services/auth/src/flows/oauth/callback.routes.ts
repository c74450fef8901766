// The address providers send the browser back to. The browser always ends at the application, with a session, a code or
// an error. While the attempt is unknown, that is the site itself (contract/auth-external.md 2.3).
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { ApiError } from '@services/common/errors'
import { inDocument } from '@services/common/http/route-schema'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { primaryEmail } from '../../adapters/oauth/clean-account.ts'
import type { SignedIn } from '../../adapters/oauth/sign-in-client.ts'
import { fitsAddress } from '../../adapters/oauth/upstream.ts'
import { recordSignIn } from '../../core/audit/sign-in-attempt.ts'
import { ERROR_NAMES, sessionParameters, withFragment, withQuery } from '../../core/redirects/redirect-url.ts'
import { linkLifetime } from '../../core/verification-messages/link-mail.ts'
import { UUID } from '../../db/uuid.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { errorResponses, HtmlPage, Redirect } from '../../http/bodies/shapes.ts'
import { clientOf } from '../../http/limits/client.ts'
import { answerByRedirect, isPrefetch, type PageAnswer } from '../../http/pages/answer-by-redirect.ts'
import { bindBrowser, isBound, unbindBrowser } from '../../http/pages/attempt-cookie.ts'
import { acceptLanguageOf, mailContextOf } from '../../http/pages/mail-context.ts'
import { isProven, provePage, type ShownPage } from '../../http/pages/page-cookie.ts'
import { ownRefusal } from '../../http/pages/redirect-target.ts'
import type { Redirection } from '../../http/pages/send-to.ts'
import { type FlowState, type FoundFlowState, takeFlowState } from './flow-states.store.ts'
import { linkingPage } from './linking-page.ts'
import { logProviderRefusal, logRefusal } from './log-refusal.ts'
import { failBegunTest, finishTest, testPage } from './provider-test.ts'
import {
  beginSignIn,
  finishSignIn,
  isReachedByTls,
  openSecrets,
  readAddressToBegin,
  type SignInOrder,
} from './sign-in.ts'

/** Apple posts the user's name beside the code, the longest form of any provider. */
const MAX_FORM_BYTES = 64 * 1024

/** Longest error text of a provider that is passed on, twice in one address. */
const MAX_ERROR_LENGTH = 500

const CallbackQuery = Type.Object(
  {
    state: Type.Optional(Type.String()),
    code: Type.Optional(Type.String()),
    error: Type.Optional(Type.String()),
    error_description: Type.Optional(Type.String()),
    begin: Type.Optional(
      Type.String({
        description:
          'Not from a provider: begins an attempt requested elsewhere and sends the browser on. Linking shows a page first, whose button posts `begin` and `page`.',
      }),
    ),
    page: Type.Optional(Type.String({ description: 'Proof that this browser was shown that page.' })),
  },
  { additionalProperties: Type.String() },
)
const CallbackForm = Type.Object(CallbackQuery.properties, {
  additionalProperties: Type.String(),
  ...inDocument({ required: false }),
})

export const callbackRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config } = deps
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request, body, done) => done(null, Object.fromEntries(new URLSearchParams(body as string))),
  )

  function answerCallback(request: FastifyRequest, reply: FastifyReply, callback: Record<string, string>) {
    let target: string | undefined
    let provider: string | undefined
    let attempt: FlowState | undefined
    return answerByRedirect(config, request, reply, {
      // A provider that answers by a form is another origin's page.
      answersForm: request.method === 'POST' && callback?.begin !== undefined,
      steps: async () => {
        if (request.validationError) throw apiError('bad_oauth_callback', { message: 'OAuth callback is malformed' })
        if (callback.begin !== undefined) {
          const beginning = readAddressToBegin(deps, callback.begin)
          target = targetOf(beginning.order)
          provider = beginning.order.provider
          await deps.limits.byAddress(request, 'authorize')
          if (!beginning.order.isTest) return begin(request, reply, beginning, callback)
          return await begin(request, reply, beginning, callback).catch((error) => failTest(request, beginning, error))
        }
        await deps.limits.byAddress(request, 'callback')
        const state = await takeState(request, callback.state)
        provider = state?.provider
        if (state?.isTest && state.refusal !== 'used') return await endTest(request, reply, state, callback)
        attempt = requireUsable(state)
        target = targetOf(attempt)
        const location = await redeem(request, attempt, callback)
        unbindBrowser(request, reply, attempt.id)
        return found(location)
      },
      failed: (error) => {
        logRefusal(request.log, provider, error)
        if (attempt) release(request, reply, attempt, error)
        const own = ownRefusal(config, target ?? config.siteUrl, error)
        if (own !== undefined) return { location: own, status: 303 }
        return target === undefined
          ? { location: withQuery(config.siteUrl, errorParameters(error)), status: 303 }
          : found(failedRedirect(target, errorParameters(error)))
      },
    })
  }

  /**
   * Ends the cookie of a failed attempt, except where the link of a mail needs it
   * (core/identities/unproven-account.ts).
   */
  function release(request: FastifyRequest, reply: FastifyReply, { id, provider }: FlowState, { code }: ApiError) {
    if (code !== 'provider_email_needs_verification') return unbindBrowser(request, reply, id)
    const lifetimeSeconds = linkLifetime(config, 'confirmation')
    const kept = { id, lifetimeSeconds, isSecure: isReachedByTls(deps, provider), isPosted: false }
    bindBrowser(request, reply, deps.attemptKey, kept)
  }

  /**
   * Sends the browser to the provider; where the attempt links an account, only by the button of a page it was shown.
   */
  async function begin(
    request: FastifyRequest,
    reply: FastifyReply,
    { id, order }: { id: string; order: SignInOrder },
    { begin = '', page: pageProof }: Record<string, string>,
  ): Promise<Redirection | PageAnswer> {
    const shown = { id, isSecure: isReachedByTls(deps, order.provider) }
    if (order.linking && request.method === 'GET') {
      const { stateLifetimeSeconds: lifetimeSeconds } = config.external
      const { attemptKey: key, random } = deps
      const page = provePage(request, reply, { ...shown, key, lifetimeSeconds, random })
      const { name, label: provider = name } = await deps.providers.find(order.provider)
      const { userId } = order.linking
      const fields = { begin, page }
      return { page: await linkingPage(deps, { provider, userId, fields, acceptLanguage: acceptLanguageOf(request) }) }
    }
    if (order.linking && !isButtonPressed(request, shown, pageProof)) throw begunElsewhere()
    const provider = await deps.providers.find(order.provider)
    const begun = await beginSignIn(deps, provider, order, () => deps.limits.countProviderRequest(request), id)
    bindBrowser(request, reply, deps.attemptKey, begun)
    return found(begun.url)
  }

  /** No foreign form can carry the proof; `Sec-Fetch-Site` rules out other hosts of this site. */
  const isButtonPressed = (request: FastifyRequest, page: ShownPage, proof = '') =>
    ['same-origin', undefined].includes(request.headers['sec-fetch-site'] as string | undefined) &&
    isProven(request, deps.attemptKey, page, proof)

  function takeState(request: FastifyRequest, id: string | undefined) {
    if (!id) throw apiError('bad_oauth_callback')
    if (!UUID.test(id)) throw apiError('bad_oauth_state', { message: 'OAuth state parameter is invalid' })
    const isSameBrowser = isBound(request, deps.attemptKey, id)
    return takeFlowState(deps.db, id, { isSameBrowser }, deps.now())
  }

  function requireUsable(state: FoundFlowState | undefined): FlowState {
    if (state?.refusal === 'elsewhere') throw begunElsewhere()
    if (state?.refusal === 'expired') throw apiError('bad_oauth_state', { message: 'OAuth state has expired' })
    if (state?.refusal === 'used' && state.pkce) throw apiError('flow_state_already_used')
    if (!state || state.refusal) throw apiError('bad_oauth_state')
    return state
  }

  async function redeem(request: FastifyRequest, state: FlowState, callback: Record<string, string>): Promise<string> {
    const target = targetOf(state)
    if (callback.error) {
      logProviderRefusal(request.log, state.provider, callback.error)
      const error = callback.error.slice(0, MAX_ERROR_LENGTH)
      const description = callback.error_description?.slice(0, MAX_ERROR_LENGTH)
      return failedRedirect(target, { error, ...(description && { error_description: description }) })
    }
    const attempt = { method: state.provider, typed: '' }
    return recordSignIn(deps, request.log, attempt, async () => {
      const provider = await findProvider(state.provider)
      const secrets = openSecrets(deps, state)
      const signedIn = await provider.client.finish(callback, secrets, deps.now())
      attempt.typed = primaryEmail(signedIn.account)?.email ?? ''
      const finished = await finishSignIn(deps, request.log, {
        state,
        provider,
        signedIn,
        client: clientOf(request, config),
        context: { ...mailContextOf(request, config), redirectTo: state.redirectTo },
      })
      if ('authCode' in finished) return withQuery(target, { code: finished.authCode })
      const tokens = tokensForAddress(signedIn)
      if (!tokens.provider_token || (signedIn.refreshToken && !tokens.provider_refresh_token)) {
        const facts = { provider: provider.name, accessTokenLength: signedIn.accessToken.length }
        request.log.warn(facts, "provider's token left out of the redirect: too long for an address; PKCE returns it")
      }
      return withFragment(target, { ...sessionParameters(finished.session), provider: provider.name, ...tokens })
    })
  }

  async function endTest(
    request: FastifyRequest,
    reply: FastifyReply,
    state: FoundFlowState,
    callback: Record<string, string>,
  ): Promise<PageAnswer> {
    await finishTest(deps, state.id, () => requireUsable(state), callback)
    unbindBrowser(request, reply, state.id)
    return { page: testPage(config, acceptLanguageOf(request)) }
  }

  async function failTest(
    request: FastifyRequest,
    { id, order }: { id: string; order: SignInOrder },
    error: unknown,
  ): Promise<PageAnswer> {
    await failBegunTest(deps, id, order, error)
    return { page: testPage(config, acceptLanguageOf(request)) }
  }

  async function findProvider(name: string) {
    try {
      return await deps.providers.find(name)
    } catch (cause) {
      if (!(cause instanceof ApiError) || cause.code !== 'validation_failed') throw cause
      throw apiError('oauth_provider_not_supported', { message: cause.message })
    }
  }

  const targetOf = ({ redirectTo }: { redirectTo: string }) => config.external.redirectUrl ?? redirectTo

  app.route({
    method: 'GET',
    url: '/callback',
    // A malformed callback redirects too.
    attachValidation: true,
    exposeHeadRoute: false,
    schema: {
      operationId: 'finishExternalSignIn',
      tags: ['external sign-in'],
      summary: 'Address that a provider sends the browser back to',
      querystring: CallbackQuery,
      response: { 200: HtmlPage, 204: Type.Null(), 302: Redirect, 303: Redirect, ...errorResponses(400) },
    },
    handler: async (request, reply) => {
      if (isPrefetch(request)) return reply.code(204).send(null)
      return answerCallback(request, reply, request.query as Record<string, string>)
    },
  })

  app.route({
    method: 'POST',
    url: '/callback',
    attachValidation: true,
    schema: {
      operationId: 'finishExternalSignInByForm',
      tags: ['external sign-in'],
      summary: 'The same, for providers that post a form',
      consumes: ['application/x-www-form-urlencoded'],
      body: CallbackForm,
      response: { 200: HtmlPage, 302: Redirect, 303: Redirect, ...errorResponses(400, 413) },
    },
    handler: async (request, reply) => answerCallback(request, reply, request.body as Record<string, string>),
  })
}

const found = (location: string): Redirection => ({ location, status: 302 })

/** The cause helps an operator whose proxy drops cookies. The attempt stays valid for the browser with the cookie. */
const begunElsewhere = () =>
  apiError('bad_oauth_state', {
    message: 'This sign-in was begun in another browser',
    cause: new Error('the browser brought no cookie of this attempt'),
  })

/** Codes that refuse the account itself: access_denied, whatever their status (contract/auth-external.md 2.3). */
const DENIED = ['signup_disabled', 'user_banned', 'provider_email_needs_verification']

const errorParameters = ({ code, status, message }: ApiError): Record<string, string> => ({
  error: DENIED.includes(code) ? 'access_denied' : (ERROR_NAMES[status] ?? 'server_error'),
  error_code: code,
  error_description: message,
})

/** Adds the error to the query, for servers, and to the fragment, for browsers. */
const failedRedirect = (target: string, parameters: Record<string, string>): string =>
  withFragment(withQuery(target, parameters), parameters)

/** The provider's tokens that fit an address. An exchanged code returns longer ones too. */
const tokensForAddress = ({ accessToken, refreshToken }: Pick<SignedIn, 'accessToken' | 'refreshToken'>) => ({
  ...(fitsAddress(accessToken) && { provider_token: accessToken }),
  ...(refreshToken && fitsAddress(refreshToken) && { provider_refresh_token: refreshToken }),
})
