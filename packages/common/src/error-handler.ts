import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { sendInForm } from './client-errors.ts'
import { isDatabaseUnavailable, isInterrupted, sqlStateOf } from './database-errors.ts'
import { ApiError, RequestTimeout } from './errors.ts'
import { hasBody } from './http-shell.ts'

/** What can go wrong before or around a handler, whatever the service. */
export type CommonFailure =
  | 'invalid_json'
  | 'invalid_request'
  | 'invalid_field'
  | 'body_too_large'
  | 'headers_too_large'
  | 'unsupported_media_type'
  | 'not_found'
  | 'method_not_allowed'
  /** The request did not arrive in time: the client's matter, unlike `timeout`. */
  | 'too_slow'
  | 'timeout'
  | 'unavailable'
  | 'unexpected'

export interface ErrorAnswers {
  /** The service's own error for each common failure; `detail` is fit for the caller. */
  common(failure: CommonFailure, detail: string | undefined, cause: unknown): ApiError
  /** Failures of the service's plugins, by `error.code`; undefined when unknown. */
  plugin?(error: FastifyError): ApiError | undefined
  /** Body and headers in the service's form. `sent` are the headers of the request, as far as there is one. */
  form(
    error: ApiError,
    requestId: string,
    sent: IncomingHttpHeaders,
  ): { body: object; headers?: Record<string, string> }
}

const FAILURE_BY_FASTIFY_CODE: Record<string, CommonFailure> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_BAD_URL: 'invalid_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
}

/** A temporary failure's Retry-After: a restarted PostgreSQL is back within a second or two. */
const RETRY_AFTER_SECONDS = 1

/**
 * The one place where failures become answers. Expected ones (`ApiError`) are written as they are; anything else is
 * logged with the request's id and answered with that id and nothing else. Also answers unknown paths (404) and known
 * paths with another method (405 with `Allow`).
 */
export function installErrorHandler(app: FastifyInstance, answers: ErrorAnswers): void {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    return sendError(explainFailure(error, request, answers), request, reply, answers)
  })

  const routes = collectRoutes(app)
  const explainUnrouted = (request: FastifyRequest, reply: FastifyReply): ApiError => {
    const path = pathOf(request)
    const route = routes.get(path) ?? [...routes.values()].find(({ pattern }) => pattern.test(path))
    const allowed = route?.methods
    // A route that took the request and then found nothing is no matter of methods.
    if (!allowed || allowed.has(request.method)) return answers.common('not_found', undefined, undefined)
    reply.header('allow', [...allowed].join(', '))
    return answers.common('method_not_allowed', undefined, undefined)
  }
  // Before the body is read: what is wrong with it is not the point. A router that finds no method of `/media/upload` takes it
  // for a `/media/:id`; it is a path of its own, and every other method is refused there.
  app.addHook('onRequest', (request, reply, done) => {
    const isOther = request.routeOptions.url?.includes(':') && routes.has(pathOf(request))
    done(request.is404 || isOther ? explainUnrouted(request, reply) : undefined)
  })
  app.setNotFoundHandler((request, reply) => sendError(explainUnrouted(request, reply), request, reply, answers))
}

/** What a failure is answered with, logged at the level it deserves; for routes that answer by something else than an error. */
export function explainFailure(error: unknown, request: FastifyRequest, answers: ErrorAnswers): ApiError {
  const answer = toApiError(error as FastifyError, request, answers)
  // Whatever it waited for has lines of its own; of one request nobody learns more than that it was slow.
  if (error instanceof RequestTimeout && answer.status === 504) request.log.warn('request took too long')
  else if (answer.status === 500 || answer.status === 504) request.log.error({ err: error }, 'request failed')
  else if (answer.status >= 500 && isDatabaseUnavailable(answer.cause) && !isInterrupted(answer.cause)) {
    // The pool reports a database that is away, with a stack and once a minute; a request only says why it was refused.
    const { code, cause } = answer
    request.log.info({ code, sqlState: sqlStateOf(cause), reason: messageOf(cause) }, 'request refused')
  } else if (answer.cause) {
    const level = answer.status >= 500 ? 'warn' : 'info'
    request.log[level]({ code: answer.code, err: answer.cause }, 'request refused')
  }
  return answer
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : undefined)

/** What a handler said of the good answer it was about to give: no cache may keep the failure for it. */
const SAID_OF_THE_ANSWER = ['etag', 'last-modified', 'content-range', 'content-disposition', 'accept-ranges']

function sendError(error: ApiError, request: FastifyRequest, reply: FastifyReply, answers: ErrorAnswers) {
  reply.header('cache-control', 'no-store')
  for (const name of SAID_OF_THE_ANSWER) {
    // With this status it is said of the refusal (RFC 9110 15.5.17).
    if (name === 'content-range' && error.status === 416) continue
    reply.removeHeader(name)
    // A stream that fails at its first byte does so after the headers were handed to Node.
    reply.raw.removeHeader(name)
  }
  if (error.retryAfterSeconds !== undefined) reply.header('retry-after', error.retryAfterSeconds)
  // What still comes of the request is not waited for.
  if (error.status === 408) reply.header('connection', 'close')
  return sendInForm(answers, error, request, reply.code(error.status))
}

/** Whether a body was announced that has not arrived. */
const isStillSending = ({ raw, headers, body }: FastifyRequest) =>
  body === undefined && !raw.complete && hasBody(headers)

function toApiError(error: FastifyError, request: FastifyRequest, answers: ErrorAnswers): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof RequestTimeout) {
    return answers.common(error.awaitsBody && isStillSending(request) ? 'too_slow' : 'timeout', undefined, error)
  }
  const failure = FAILURE_BY_FASTIFY_CODE[error.code]
  if (failure) return answers.common(failure, undefined, error)
  if (error.validation) return answers.common('invalid_field', describeValidation(error), undefined)
  const fromPlugin = answers.plugin?.(error)
  if (fromPlugin) return fromPlugin
  if (isDatabaseUnavailable(error)) {
    const unavailable = answers.common('unavailable', undefined, error)
    return new ApiError(unavailable.code, unavailable.status, unavailable.message, {
      retryAfterSeconds: RETRY_AFTER_SECONDS,
      cause: error,
    })
  }
  // Refusals of plugins we did not ask: a path that climbs out of the docs' folder is 403 to them and nothing to us.
  const { statusCode = 500 } = error
  if (statusCode === 403 || statusCode === 404) return answers.common('not_found', undefined, error)
  if (statusCode >= 400 && statusCode < 500) return answers.common('invalid_request', undefined, error)
  return answers.common('unexpected', undefined, error)
}

/** "email must be string": names the field and the rule, never the value. */
function describeValidation(error: FastifyError): string {
  const first = error.validation?.[0]
  const field = first?.instancePath.slice(1).replaceAll('/', '.')
  return [field || error.validationContext, first?.message].filter(Boolean).join(' ')
}

const pathOf = ({ url }: FastifyRequest) => url.split('?', 1)[0] as string

interface Route {
  pattern: RegExp
  methods: Set<string>
}

/** Keys are addresses as registered. */
type Routes = ReadonlyMap<string, Route>

/** Routes as they are registered; preflight answers (OPTIONS) exist for every path and say nothing about it. */
function collectRoutes(app: FastifyInstance): Routes {
  const routes = new Map<string, Route>()
  app.addHook('onRoute', (route) => {
    const methods = [route.method].flat().filter((method) => method !== 'OPTIONS')
    if (methods.length === 0) return
    const known = routes.get(route.url)
    for (const method of methods) known?.methods.add(method)
    if (!known) routes.set(route.url, { pattern: patternOf(route.url), methods: new Set(methods) })
  })
  return routes
}

/** Each path is read once, however hostile: what ends at a dot has none in it. */
function patternOf(url: string): RegExp {
  const literal = url.replaceAll(/[.+^$()|[\]\\]/g, String.raw`\$&`)
  const parameters = literal.replaceAll(/:[A-Za-z_]+(\\\.)?/g, (_, dot) => (dot ? String.raw`[^/.]+\.` : '[^/]+'))
  return new RegExp(`^${parameters.replaceAll('*', '.*')}$`)
}
