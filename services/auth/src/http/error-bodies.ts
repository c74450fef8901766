import type { CommonFailure, ErrorAnswers } from '@services/common/error-handler'
import type { ApiError } from '@services/common/errors'
import { secureHeadersOf } from '@services/common/http-shell'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { apiError, type ErrorCode } from '../errors.ts'

/**
 * Two forms of one error, chosen by the date in `X-Supabase-Api-Version` (contract/auth-core.md 2.1): the older form has
 * the status as `code`, the newer one, from 2024-01-01 on, the error code.
 */
const API_VERSION_HEADER = 'x-supabase-api-version'
const NEW_FORM_SINCE = '2024-01-01'

const CODES: Record<CommonFailure, ErrorCode> = {
  invalid_json: 'bad_json',
  invalid_request: 'validation_failed',
  invalid_field: 'bad_json',
  body_too_large: 'request_entity_too_large',
  unsupported_media_type: 'bad_json',
  not_found: 'not_found',
  method_not_allowed: 'method_not_allowed',
  timeout: 'request_timeout',
  unavailable: 'service_unavailable',
  unexpected: 'unexpected_failure',
}

export const errorAnswers: ErrorAnswers = {
  common: (failure, detail, cause) =>
    apiError(CODES[failure], { cause, ...(detail ? { message: `Could not read the request: ${detail}` } : {}) }),
  send(error, request, reply) {
    reply.header('x-sb-error-code', error.code)
    return wantsNewForm(request) ? sendNewForm(error, reply) : sendOldForm(error, request, reply)
  },
}

/**
 * For addresses no route is looked up for, a broken escape or a parameter longer than any of ours: Fastify answers these
 * before any hook, and by itself would repeat the address.
 */
export function answerUnreadableAddress(error: FastifyError, request: FastifyRequest, reply: FastifyReply): void {
  const failure = error.code === 'FST_ERR_MAX_PARAM_LENGTH' ? 'not_found' : 'invalid_request'
  const answer = errorAnswers.common(failure, undefined, error)
  errorAnswers.send(answer, request, reply.code(answer.status).headers(secureHeadersOf(request)))
}

function sendNewForm(error: ApiError, reply: FastifyReply) {
  return reply
    .header(API_VERSION_HEADER, NEW_FORM_SINCE)
    .send({ code: error.code, message: error.message, ...error.details })
}

function sendOldForm(error: ApiError, request: FastifyRequest, reply: FastifyReply) {
  return reply.send({
    code: error.status,
    error_code: error.code,
    msg: error.message,
    ...(error.status >= 500 ? { error_id: request.id } : {}),
    ...error.details,
  })
}

function wantsNewForm(request: FastifyRequest): boolean {
  const version = String(request.headers[API_VERSION_HEADER] ?? '')
  return /^\d{4}-\d{2}-\d{2}$/.test(version) && !Number.isNaN(Date.parse(version)) && version >= NEW_FORM_SINCE
}
