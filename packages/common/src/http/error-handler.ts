// The one place where failures become answers. Only an `ApiError` shows its text; all else is logged and answered with
// the request's id. Failures before a route: parser-errors.ts. Catalogues and the factory: errors.ts.
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { isDatabaseUnavailable, isInterrupted, sqlStateOf } from '../database/errors.ts'
import { ApiError, RequestTimeout } from '../errors.ts'
import { inWords } from '../list-in-words.ts'
import { type CommonFailure, type ErrorAnswers, sendInForm } from './error-answers.ts'
import { hasBody } from './request-hooks.ts'

const FAILURE_BY_CODE: Record<string, CommonFailure> = {
  FST_ERR_CTP_BODY_TOO_LARGE: 'body_too_large',
  FST_ERR_CTP_INVALID_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_EMPTY_JSON_BODY: 'invalid_json',
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: 'invalid_request',
  FST_ERR_CTP_INVALID_MEDIA_TYPE: 'unsupported_media_type',
  FST_ERR_BAD_URL: 'invalid_request',
  FST_ERR_MAX_PARAM_LENGTH: 'not_found',
  // PostgreSQL has no NUL in texts; `%00` in an address is one.
  '22021': 'invalid_request',
}

/** Retry-After of a temporary failure: a restarted PostgreSQL is back within a second or two. */
const RETRY_AFTER_SECONDS = 1

/** Answers failures, unknown paths (404) and known paths with another method (405 with `Allow`). */
export function installErrorHandler(app: FastifyInstance, answers: ErrorAnswers): void {
  answerFailures(app, answers)

  const routes = collectRoutes(app)
  const explainUnrouted = (request: FastifyRequest, reply: FastifyReply): ApiError => {
    const path = pathOf(request)
    const route = routes.get(path) ?? [...routes.values()].find(({ pattern }) => pattern.test(path))
    const allowed = route?.methods
    // A route that accepted the method may still find nothing.
    if (!allowed || allowed.has(request.method)) return answers.common('not_found', undefined, undefined)
    reply.header('allow', [...allowed].join(', '))
    return answers.common('method_not_allowed', undefined, undefined)
  }
  // Refused before the body is read. The router takes a wrong method of `/media/upload` for `/media/:id`; the exact
  // path decides.
  app.addHook('onRequest', (request, reply, done) => {
    const isOther = request.routeOptions.url?.includes(':') && routes.has(pathOf(request))
    done(request.is404 || isOther ? explainUnrouted(request, reply) : undefined)
  })
  app.setNotFoundHandler((request, reply) => sendError(explainUnrouted(request, reply), request, reply, answers))
}

/** Answers the failures of a scope's routes in a form of its own. */
export function answerFailures(app: FastifyInstance, answers: ErrorAnswers): void {
  app.setErrorHandler<FastifyError>((error, request, reply) => {
    return sendError(explainFailure(error, request, answers), request, reply, answers)
  })
}

/** Logs a failure and returns its answer; for routes that answer with something other than an error. */
export function explainFailure(error: unknown, request: FastifyRequest, answers: ErrorAnswers): ApiError {
  const answer = toApiError(error as FastifyError, request, answers)
  // The cause of the delay has log lines of its own.
  if (error instanceof RequestTimeout && answer.status === 504) request.log.warn('request took too long')
  else if (answer.status === 500 || answer.status === 504) request.log.error({ err: error }, 'request failed')
  else if (answer.status >= 500 && isDatabaseUnavailable(answer.cause) && !isInterrupted(answer.cause)) {
    // The pool logs the outage with a stack once a minute; the request's line gives only the reason.
    const { code, cause } = answer
    request.log.info({ code, sqlState: sqlStateOf(cause), reason: messageOf(cause) }, 'request refused')
  } else if (answer.cause) {
    const level = answer.status >= 500 ? 'warn' : 'info'
    request.log[level]({ code: answer.code, err: answer.cause }, 'request refused')
  }
  return answer
}

const messageOf = (cause: unknown) => (cause instanceof Error ? cause.message : undefined)

/** Headers of the intended answer; with them a cache could store the failure in its place. */
const ANSWER_HEADERS = ['etag', 'last-modified', 'content-range', 'content-disposition', 'accept-ranges']

function sendError(error: ApiError, request: FastifyRequest, reply: FastifyReply, answers: ErrorAnswers) {
  reply.header('cache-control', 'no-store')
  for (const name of ANSWER_HEADERS) {
    // A 416 needs it (RFC 9110 15.5.17).
    if (name === 'content-range' && error.status === 416) continue
    reply.removeHeader(name)
    // When a stream fails at its first byte, Node already has the headers.
    reply.raw.removeHeader(name)
  }
  if (error.retryAfterSeconds !== undefined) reply.header('retry-after', error.retryAfterSeconds)
  // The rest of the request is not awaited.
  if (error.status === 408) reply.header('connection', 'close')
  return sendInForm(answers, error, request, reply.code(error.status))
}

/** Whether an announced body has not fully arrived. */
const isStillSending = ({ raw, headers, body }: FastifyRequest) =>
  body === undefined && !raw.complete && hasBody(headers)

function toApiError(error: FastifyError, request: FastifyRequest, answers: ErrorAnswers): ApiError {
  if (error instanceof ApiError) return error
  if (error instanceof RequestTimeout) {
    return answers.common(error.awaitsBody && isStillSending(request) ? 'too_slow' : 'timeout', undefined, error)
  }
  const failure = FAILURE_BY_CODE[error.code]
  if (failure) return answers.common(failure, undefined, error)
  if (error.validation) return answers.common('invalid_field', describeValidation(error, request), undefined)
  const fromPlugin = answers.plugin?.(error)
  if (fromPlugin) return fromPlugin
  if (isDatabaseUnavailable(error)) return unavailable(answers, error)
  // Plugins answer 403 to a path that leaves the docs' folder; to us it does not exist.
  const { statusCode = 500 } = error
  if (statusCode === 403 || statusCode === 404) return answers.common('not_found', undefined, error)
  if (statusCode >= 400 && statusCode < 500) return answers.common('invalid_request', undefined, error)
  return answers.common('unexpected', undefined, error)
}

/** Makes the 503 of a failure that passes within moments. */
export function unavailable(answers: ErrorAnswers, cause: unknown): ApiError {
  const { code, status, message } = answers.common('unavailable', undefined, cause)
  return new ApiError(code, status, message, { retryAfterSeconds: RETRY_AFTER_SECONDS, cause })
}

/** `code must be a string, not a number`, `sort must be created or title`: names field and rule, never the value. */
function describeValidation({ validation = [], validationContext }: FastifyError, request: FastifyRequest): string {
  const [first] = validation
  const choices = validation
    .filter(({ instancePath }) => instancePath === first?.instancePath)
    .flatMap(({ keyword, params }) => (keyword === 'const' ? [params.allowedValue] : choicesOf(keyword, params)))
    .map(String)
  const field = first?.instancePath.slice(1).replaceAll('/', '.')
  const expected = first?.keyword === 'type' ? describeType(first.params.type) : undefined
  const given = expected && typeAt(validationContext === 'body' ? request.body : undefined, first?.instancePath ?? '')
  const rule = expected
    ? `must be ${expected}${given ? `, not ${given}` : ''}`
    : choices.length > 0
      ? `must be ${inWords(choices, 'or')}`
      : first?.message
  return [field || validationContext, rule].filter(Boolean).join(' ')
}

const choicesOf = (keyword: string, { allowedValues }: { allowedValues?: unknown }): unknown[] =>
  keyword === 'enum' && Array.isArray(allowedValues) ? allowedValues : []

const TYPES: Record<string, string> = {
  string: 'a string',
  number: 'a number',
  integer: 'an integer',
  boolean: 'a boolean',
  object: 'an object',
  array: 'a list',
  null: 'null',
}

const describeType = (types: unknown): string =>
  inWords(
    [types].flat().map((type) => TYPES[String(type)] ?? String(type)),
    'or',
  )

/** Names the type of the value at a JSON pointer. */
function typeAt(body: unknown, pointer: string): string | undefined {
  let value = body
  for (const part of pointer.split('/').slice(1)) {
    value = (value as Record<string, unknown> | undefined)?.[part.replaceAll('~1', '/').replaceAll('~0', '~')]
  }
  if (value === undefined) return undefined
  return TYPES[value === null ? 'null' : Array.isArray(value) ? 'array' : typeof value]
}

const pathOf = ({ url }: FastifyRequest) => url.split('?', 1)[0] as string

interface Route {
  pattern: RegExp
  methods: Set<string>
}

type Routes = ReadonlyMap<string, Route>

/** Collects routes at registration. OPTIONS is left out: every path answers preflights. */
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

/** Matches in linear time, however hostile the path: a parameter that ends at a dot contains none. */
function patternOf(url: string): RegExp {
  const literal = url.replaceAll(/[.+^$()|[\]\\]/g, String.raw`\$&`)
  const parameters = literal.replaceAll(/:[A-Za-z_]+(\\\.)?/g, (_, dot) => (dot ? String.raw`[^/.]+\.` : '[^/]+'))
  return new RegExp(`^${parameters.replaceAll('*', '.*')}$`)
}
