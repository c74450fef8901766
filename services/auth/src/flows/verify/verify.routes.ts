import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { ApiError } from '@services/common/errors'
import { inDocument, withHeaders } from '@services/common/http/route-schema'
import { counted } from '@services/common/telemetry/instruments'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import type { Config } from '../../config.ts'
import { recordSignIn } from '../../core/audit/sign-in-attempt.ts'
import { ERROR_NAMES, sessionParameters, withFragment, withQuery } from '../../core/redirects/redirect-url.ts'
import { SessionShape } from '../../core/sessions/issue-tokens.ts'
import { parsePhone } from '../../core/users/phone-number.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { choiceOf, errorResponses, Field, HtmlPage, hookedResponses, Redirect } from '../../http/bodies/shapes.ts'
import { requestAudience } from '../../http/caller/authenticate.ts'
import { DEVICE_HEADERS, DEVICE_TOKEN, withTrustedDevice } from '../../http/caller/trusted-device.ts'
import { clientOf, limitKeyOf } from '../../http/limits/client.ts'
import { answerByRedirect, isPrefetch, type PageAnswer } from '../../http/pages/answer-by-redirect.ts'
import { isBound } from '../../http/pages/attempt-cookie.ts'
import { buttonPage } from '../../http/pages/button-page.ts'
import { acceptLanguageOf } from '../../http/pages/mail-context.ts'
import { pageWords } from '../../http/pages/page-words.ts'
import { ownRefusal, redirectTarget } from '../../http/pages/redirect-target.ts'
import type { Redirection } from '../../http/pages/send-to.ts'
import type { ShownPage } from '../../http/pages/show-page.ts'
import { countSignIn } from '../../metrics.ts'
import { isSameLink, TYPES, TYPES_OF_LINKS, type VerifyOutcome, verifyCode, verifyLink } from './verify.ts'

const LinkQuery = Type.Object({
  token: Type.Optional(Type.String({ description: "The link's token.", ...inDocument({ required: true }) })),
  type: Type.Optional(choiceOf(TYPES_OF_LINKS, { required: true })),
  redirect_to: Type.Optional(Type.String()),
})
const FormQuery = Type.Object({
  token: Type.Optional(Type.String()),
  type: Type.Optional(choiceOf(TYPES_OF_LINKS)),
  redirect_to: Type.Optional(Type.String()),
})
const OtherAddressToo = Type.Object({ code: Type.Literal('200'), msg: Type.String() })
const Verified = Type.Union([SessionShape, OtherAddressToo])
/** JSON for clients; the form of the confirmation page gets a page that goes on. */
const VerifiedOrPage = Type.Unsafe<Static<typeof Verified> | string>({
  content: { 'application/json': { schema: Verified }, 'text/html': { schema: Type.String() } },
})
type LinkRequest = FastifyRequest<{ Querystring: Static<typeof LinkQuery> }>

interface Link {
  token: string
  type: string
  target: string
}

export const verifyRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps

  const senderOf = (request: FastifyRequest) => ({
    log: request.log,
    client: clientOf(request, config),
    clientAddress: limitKeyOf(request, config),
    acceptLanguage: acceptLanguageOf(request),
    isBound: (attemptId: string) => isBound(request, deps.attemptKey, attemptId),
  })

  function answerLink(
    request: LinkRequest,
    reply: FastifyReply,
    steps: (link: Link) => Promise<Redirection | PageAnswer>,
  ) {
    const { token, type } = request.query
    if (!token || !type) throw apiError('validation_failed', { message: 'Verify requires a token and a type' })
    const target = redirectTarget(request, { siteUrl: config.siteUrl, allowList: config.redirectAllowList })
    const link = { token, type, target }
    return answerByRedirect(config, request, reply, {
      answersForm: request.method === 'POST',
      steps: () => steps(link),
      failed: (error) => seeOther(ownRefusal(config, target, error) ?? withError(link, error)),
    })
  }

  async function redeemLink(request: LinkRequest, link: Link): Promise<Redirection> {
    await limits.byAddress(request, 'verify')
    const input = { ...senderOf(request), type: link.type, givesCode: true }
    return seeOther(withOutcome(link, await countedAsOtp(() => verifyLink(deps, link.token, input))))
  }

  app.route({
    method: 'GET',
    url: '/verify',
    exposeHeadRoute: false,
    schema: {
      operationId: 'followLink',
      tags: ['verify'],
      summary: 'The link in a mail: confirms and redirects, with a session or an error in the fragment',
      querystring: LinkQuery,
      response: { 200: HtmlPage, 204: Type.Null(), 303: Redirect, ...errorResponses(400) },
    },
    handler: async (request, reply) => {
      if (isPrefetch(request)) return reply.code(204).send(null)
      return answerLink(request, reply, async (link) =>
        isBehindPage(config, link.type) ? { page: linkPage(config, request, link.type) } : redeemLink(request, link),
      )
    },
  })

  // Scanners request links with HEAD, which must not spend the token (design.md 5.5).
  app.route({
    method: 'HEAD',
    url: '/verify',
    schema: { hide: true },
    handler: async (_request, reply) => reply.code(200).send(),
  })

  app.route({
    method: 'POST',
    url: '/verify',
    schema: {
      operationId: 'verify',
      tags: ['verify'],
      summary: 'Confirms with a code and its address, or with the token of a link',
      querystring: FormQuery,
      requestHeaders: ['X-JWT-AUD', DEVICE_TOKEN],
      body: Type.Object({
        type: Type.Optional(choiceOf(TYPES, { required: true })),
        token: Type.Optional(Field),
        token_hash: Type.Optional(Field),
        email: Type.Optional(Field),
        phone: Type.Optional(Field),
        password: Type.Optional(Field),
        redirect_to: Type.Optional(Field),
      }),
      response: {
        200: withHeaders(VerifiedOrPage, ...DEVICE_HEADERS),
        ...hookedResponses(400, 403, 413, 422, 429),
      },
    },
    // Two shapes under one status: serialised as built, because a union would be matched against both at run time.
    serializerCompiler: () => JSON.stringify,
    // The button of a link's page posts an empty form.
    preValidation: async (request) => {
      if (isLinkForm(request)) request.body ??= {}
    },
    handler: async (request, reply) => {
      if (isLinkForm(request)) return answerLink(request, reply, (link) => redeemLink(request, link))
      await limits.byAddress(request, 'verify')
      const { type = '', token = '', token_hash: tokenHash = '', phone = '', password, redirect_to } = request.body
      const { email = '' } = request.body
      if (type === '') throw apiError('validation_failed', { message: 'Verify requires a verification type' })
      if ((token === '') === (tokenHash === '')) {
        throw apiError('validation_failed', { message: 'Verify requires either a token or a token hash' })
      }
      const input = { ...senderOf(request), type, password }
      if (tokenHash !== '') {
        if (email || phone || redirect_to) {
          throw apiError('validation_failed', { message: 'Only the token_hash and type should be provided' })
        }
        return withTrustedDevice(deps, request, reply, async (client) =>
          toAnswer(await countedAsOtp(() => verifyLink(deps, tokenHash, { ...input, client }))),
        )
      }
      if ((email === '') === (phone === '')) {
        throw apiError('validation_failed', { message: 'Only an email address or phone number should be provided' })
      }
      const address = email === '' ? parsePhone(phone) : parseEmail(email, 422)
      const audience = requestAudience(request, config.jwt)
      const code = { address, audience, code: token }
      const attempt = { method: 'otp', typed: address }
      return withTrustedDevice(deps, request, reply, async (client) =>
        toAnswer(await recordSignIn(deps, request.log, attempt, () => verifyCode(deps, code, { ...input, client }))),
      )
    },
  })
}

/** A link token that matches nothing is no attempt at any account. */
const countedAsOtp = (redeem: () => Promise<VerifyOutcome>) => counted((result) => countSignIn('otp', result), redeem)

const OTHER_ADDRESS_TOO = 'Confirmation link accepted. Please proceed to confirm link sent to the other email'

/** `code` is text here, as the reference has it. */
const toAnswer = (outcome: VerifyOutcome) =>
  'session' in outcome ? outcome.session : { code: '200' as const, msg: OTHER_ADDRESS_TOO }

const seeOther = (location: string): Redirection => ({ location, status: 303 })

function withOutcome(link: Link, outcome: VerifyOutcome): string {
  if ('authCode' in outcome) return withQuery(link.target, { code: outcome.authCode })
  if (!('session' in outcome)) return withParameters(link, { message: OTHER_ADDRESS_TOO })
  const { session } = outcome
  // Appended to the target's own fragment: some applications route by it.
  return link.target + withFragment('', { ...sessionParameters(session), type: session.type ?? '' })
}

function withError(link: Link, { status, code, message }: ApiError): string {
  const name = ERROR_NAMES[status]
  return withParameters(link, { ...(name && { error: name }), error_code: code, error_description: message })
}

/**
 * Replaces the target's fragment. A link of the PKCE flow, whose application reads on the server, gets the query as
 * well.
 */
const withParameters = ({ target, token }: Link, parameters: Record<string, string>): string =>
  withFragment(token.startsWith('pkce_') ? withQuery(target, parameters) : target, parameters)

/** Compares the purposes that a type redeems, because its name can be edited in the link. */
const isBehindPage = ({ mail }: Pick<Config, 'mail'>, type: string): boolean =>
  mail.confirmationPageTypes.some((listed) => isSameLink(type, listed))

/**
 * Renders the page between a mail link and its effect (AUTH_MAILER_LINK_CONFIRMATION_PAGE): scanners open links but
 * press no buttons. The button posts to the same address.
 */
function linkPage(config: Config, request: FastifyRequest, type: string): ShownPage {
  const { language, words, site } = pageWords(config, acceptLanguageOf(request))
  const { pages } = words
  const { heading, text, button } = Object.hasOwn(pages, type) ? pages[type as keyof typeof pages] : pages.email
  const action = request.url.slice(request.url.indexOf('?'))
  return buttonPage({ language, heading, text: text.replace('{site}', () => site), button, action })
}

const isLinkForm = (request: FastifyRequest) =>
  Boolean((request.query as { token?: string }).token) &&
  /^application\/x-www-form-urlencoded/i.test(request.headers['content-type'] ?? '')
