import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { answerTimeoutBy, isPastDeadline } from '@services/common/deadline'
import { inDocument, withHeaders } from '@services/common/documented'
import { explainFailure } from '@services/common/error-handler'
import { counted } from '@services/common/instruments'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { parseEmail } from '../../adapters/mail/email-address.ts'
import { pickLocale } from '../../adapters/mail/locale.ts'
import type { Config } from '../../config.ts'
import { recordSignIn } from '../../core/audit/sign-in-attempt.ts'
import { SessionShape } from '../../core/sessions/answer-session.ts'
import { parsePhone } from '../../core/users/phone-number.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { requestAudience } from '../../http/authenticate.ts'
import { BUTTON_PAGE_CSP } from '../../http/button-page.ts'
import { clientOf, limitKeyOf } from '../../http/client.ts'
import { errorAnswers } from '../../http/error-bodies.ts'
import { acceptLanguageOf } from '../../http/mail-context.ts'
import { isPrefetch } from '../../http/prefetch.ts'
import { redirectTarget } from '../../http/redirect-target.ts'
import { choiceOf, errorResponses, Field, HtmlPage, Redirect } from '../../http/shapes.ts'
import { countSignIn } from '../../metrics.ts'
import { confirmationPage } from './confirmation-page.ts'
import { type Confirmed, isSameLink, TYPES, TYPES_OF_LINKS, verifyCode, verifyLink } from './verify.ts'
import { codeRedirect, errorRedirect, type Flow, flowOf, messageRedirect, sessionRedirect } from './verify-redirect.ts'

const LinkQuery = Type.Object({
  token: Type.Optional(Type.String({ description: "The link's token.", ...inDocument({ required: true }) })),
  type: Type.Optional(choiceOf(TYPES_OF_LINKS, { required: true })),
  redirect_to: Type.Optional(Type.String()),
})
/** The confirmation page's form is posted to the link's own address. */
const FormQuery = Type.Object({
  token: Type.Optional(Type.String()),
  type: Type.Optional(choiceOf(TYPES_OF_LINKS)),
  redirect_to: Type.Optional(Type.String()),
})
/** The first of the two confirmations a change of address needs. */
const OtherAddressToo = Type.Object({ code: Type.Literal('200'), msg: Type.String() })
type LinkRequest = FastifyRequest<{ Querystring: Type.Static<typeof LinkQuery> }>

export const verifyRoutes: FastifyPluginAsyncTypebox<{ deps: Deps }> = async (app, { deps }) => {
  const { config, limits } = deps

  async function followLink(request: LinkRequest, reply: FastifyReply) {
    const { token, type } = requireLink(request)
    const target = redirectTarget(request, { siteUrl: config.siteUrl, allowList: config.redirectAllowList })
    const flow = flowOf(token)
    reply.header('referrer-policy', 'no-referrer')
    const failed = (error: unknown) => errorRedirect(target, explainFailure(error, request, errorAnswers), flow)
    answerTimeoutBy((timeout) => reply.redirect(failed(timeout), 303))
    let location: string
    try {
      await limits.byAddress(request, 'verify')
      const client = clientOf(request, config)
      const confirmed = await countedAsOtp(() =>
        verifyLink(deps, request.log, token, {
          type,
          client,
          clientAddress: limitKeyOf(request, config),
          givesCode: true,
          acceptLanguage: acceptLanguageOf(request),
        }),
      )
      location = confirmedRedirect(target, confirmed, flow)
    } catch (error) {
      if (isPastDeadline()) return reply
      location = failed(error)
    }
    return isPastDeadline() ? reply : reply.redirect(location, 303)
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
      const { type } = requireLink(request)
      if (!isBehindPage(config, type)) return followLink(request, reply)
      reply.header('content-security-policy', BUTTON_PAGE_CSP).header('referrer-policy', 'no-referrer')
      const action = request.url.slice(request.url.indexOf('?'))
      const locale = pickLocale(config.mail, { acceptLanguage: acceptLanguageOf(request) })
      const page = confirmationPage({ action, type, locale, siteUrl: config.siteUrl })
      return reply.type('text/html; charset=utf-8').send(page)
    },
  })

  // Scanners look at links with HEAD; it must not spend the token (design.md 5.5).
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
      requestHeaders: ['X-JWT-AUD'],
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
        200: Type.Union([SessionShape, OtherAddressToo]),
        303: withHeaders(Type.Null({ description: 'Redirect to the form of the confirmation page.' }), 'Location'),
        ...errorResponses(400, 403, 413, 422, 429),
      },
    },
    // Two shapes under one status: serialised as built, because a union would be matched against both at run time.
    serializerCompiler: () => JSON.stringify,
    // The button of the confirmation page posts an empty form to the link's own address.
    preValidation: async (request) => {
      if (isLinkForm(request)) request.body ??= {}
    },
    handler: async (request, reply) => {
      if (isLinkForm(request)) return followLink(request, reply)
      await limits.byAddress(request, 'verify')
      const { type = '', token = '', token_hash: tokenHash = '', phone = '', password, redirect_to } = request.body
      const { email = '' } = request.body
      if (type === '') throw apiError('validation_failed', { message: 'Verify requires a verification type' })
      if ((token === '') === (tokenHash === '')) {
        throw apiError('validation_failed', { message: 'Verify requires either a token or a token hash' })
      }
      const client = clientOf(request, config)
      const clientAddress = limitKeyOf(request, config)
      const confirmation = { type, password, client, clientAddress, acceptLanguage: acceptLanguageOf(request) }
      if (tokenHash !== '') {
        if (email || phone || redirect_to) {
          throw apiError('validation_failed', { message: 'Only the token_hash and type should be provided' })
        }
        return toAnswer(await countedAsOtp(() => verifyLink(deps, request.log, tokenHash, confirmation)))
      }
      if ((email === '') === (phone === '')) {
        throw apiError('validation_failed', { message: 'Only an email address or phone number should be provided' })
      }
      const address = email === '' ? parsePhone(phone) : parseEmail(email, 422)
      const audience = requestAudience(request, config.jwt)
      const code = { address, audience, code: token }
      const attempt = { method: 'otp', typed: address }
      return toAnswer(
        await recordSignIn(deps, request.log, attempt, () => verifyCode(deps, request.log, code, confirmation)),
      )
    },
  })
}

/** A link token that nothing has is no attempt at anybody's account. */
const countedAsOtp = (redeem: () => Promise<Confirmed>) => counted((result) => countSignIn('otp', result), redeem)

const OTHER_ADDRESS_TOO = 'Confirmation link accepted. Please proceed to confirm link sent to the other email'

/** `code` is text here, as the reference has it. */
const toAnswer = (confirmed: Confirmed) =>
  'session' in confirmed ? confirmed.session : { code: '200' as const, msg: OTHER_ADDRESS_TOO }

function confirmedRedirect(target: string, confirmed: Confirmed, flow: Flow): string {
  if ('session' in confirmed) return sessionRedirect(target, confirmed.session)
  if ('authCode' in confirmed) return codeRedirect(target, confirmed.authCode)
  return messageRedirect(target, OTHER_ADDRESS_TOO, flow)
}

function requireLink({ query: { token, type } }: LinkRequest): { token: string; type: string } {
  if (token && type) return { token, type }
  throw apiError('validation_failed', { message: 'Verify requires a token and a type' })
}

/** The type is what the link says; the token decides, so each type that redeems a listed one's tokens has the page. */
const isBehindPage = ({ mail }: Pick<Config, 'mail'>, type: string): boolean =>
  mail.confirmationPageTypes.some((listed) => isSameLink(type, listed))

const isLinkForm = (request: FastifyRequest) =>
  Boolean((request.query as { token?: string }).token) &&
  /^application\/x-www-form-urlencoded/i.test(request.headers['content-type'] ?? '')
