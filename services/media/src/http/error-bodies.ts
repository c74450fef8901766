import type { ApiError } from '@services/common/errors'
import type { CommonFailure, ErrorAnswers } from '@services/common/http/error-answers'
import type { FastifyError, FastifyInstance } from 'fastify'
import { apiError, type ErrorCode, errorCatalogue } from '../errors.ts'
import { StorageUnavailable } from '../store/blobs/blob-storage.ts'

const CODES: Record<CommonFailure, ErrorCode> = {
  invalid_json: 'invalid_json',
  invalid_request: 'invalid_request',
  invalid_field: 'invalid_field',
  body_too_large: 'body_too_large',
  headers_too_large: 'headers_too_large',
  unsupported_media_type: 'unsupported_media_type',
  not_found: 'not_found',
  method_not_allowed: 'method_not_allowed',
  too_slow: 'request_too_slow',
  timeout: 'processing_timeout',
  unavailable: 'unavailable',
  unexpected: 'internal',
}

/** Texts of common failures that differ from the catalogue's, which are about files. */
const MESSAGES: Partial<Record<CommonFailure, string>> = {
  unsupported_media_type: 'This address does not accept the Content-Type of the request.',
  timeout: 'The request took too long.',
}

/** Codes of @fastify/multipart for too many parts. */
const MULTIPART_LIMITS = new Set(['FST_PARTS_LIMIT', 'FST_FILES_LIMIT', 'FST_FIELDS_LIMIT'])

/** Codes and messages of @fastify/multipart and its parser for a malformed form. */
const MULTIPART_BROKEN =
  /FST_MP_PREMATURE_CLOSE|FST_PROTO_VIOLATION|FST_INVALID_JSON_FIELD_ERROR|Multipart: Boundary not found|Unexpected end of multipart data|Part terminated early|Malformed part header|Unsupported content type|Header size exceeded|needle cannot have a length/i

/** A 401 says how to authenticate (RFC 9110 15.5.2). */
const CHALLENGE = { 'www-authenticate': 'Token realm="media"' }

/** One body for every failure (contract/media.md 2.6): `error`, and flat members that the original's clients read. */
export const errorAnswers = (docsUrl: string): ErrorAnswers => ({
  common: (failure, detail, cause) =>
    detail ? fieldError(detail) : apiError(CODES[failure], { message: MESSAGES[failure], cause }),
  plugin: (error) => multipartFailure(error) ?? outage(error),
  form: (error, requestId) => ({
    body: errorBody(error, requestId, docsUrl),
    ...(error.status === 401 && { headers: CHALLENGE }),
  }),
})

/** The failure of reading a form; undefined for other errors. */
export function multipartFailure(error: FastifyError): ApiError | undefined {
  if (MULTIPART_LIMITS.has(error.code)) return apiError('body_too_large', { message: 'The form has too many parts.' })
  if (error.code === 'FST_REQ_FILE_TOO_LARGE') return apiError('file_too_large', { cause: error })
  if (MULTIPART_BROKEN.test(`${error.code} ${error.message}`)) return apiError('malformed_multipart', { cause: error })
  return undefined
}

/** Disk full, quota exceeded, read-only, file too large, too many open files: not the caller's fault. */
const DISK_REFUSES = new Set(['ENOSPC', 'EDQUOT', 'EROFS', 'EFBIG', 'EMFILE', 'ENFILE'])

/** An operator has to free space, which takes longer than a restart; a restarted S3 is back within moments. */
const [DISK_RETRY_SECONDS, STORAGE_RETRY_SECONDS] = [60, 5]

function outage(cause: FastifyError): ApiError | undefined {
  if (DISK_REFUSES.has(cause.code)) return apiError('unavailable', { retryAfterSeconds: DISK_RETRY_SECONDS, cause })
  if (!(cause instanceof StorageUnavailable)) return undefined
  return apiError('unavailable', { retryAfterSeconds: STORAGE_RETRY_SECONDS, cause })
}

function errorBody(error: ApiError, requestId: string, docsUrl: string) {
  const { param, ...details } = error.details ?? {}
  return {
    error: {
      code: error.code,
      message: error.message,
      ...(param === undefined ? {} : { param }),
      ...(Object.keys(details).length === 0 ? {} : { details }),
      request_id: requestId,
    },
    message: error.message,
    reference: `${docsUrl}#${error.code}`,
  }
}

/** `detail` is the validator's sentence: "tags must be array" names `tags`, "body must be object" names no field. */
function fieldError(detail: string): ApiError {
  const [subject] = detail.split(' ', 1)
  const parent = subject === 'body' || subject === 'querystring' ? undefined : subject
  const [, missing] = /must have required property '(\w+)'/.exec(detail) ?? []
  if (!parent && missing === 'source') return apiError('missing_source')
  const param = [parent, missing].filter(Boolean).join('.') || undefined
  return apiError('invalid_field', { message: `Not accepted: ${detail}.`, details: { param } })
}

const PROBLEM = 'application/problem+json'

/** The type by name, without a quality of zero; a wildcard does not ask for it. */
const ASKS_FOR_PROBLEM = /application\/problem\+json(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i

/** Answers RFC 9457 when Accept names it (contract/media.md 2.6); our own members stay, so a client can read both. */
export function answerProblems(app: FastifyInstance): void {
  app.addHook('preSerialization', (request, reply, payload, done) => {
    if (!isFailure(payload)) return done(null, payload)
    reply.header('vary', 'Accept')
    if (!ASKS_FOR_PROBLEM.test(request.headers.accept ?? '')) return done(null, payload)
    reply.type(PROBLEM)
    const { code, message, request_id } = payload.error
    const { message: title } = errorCatalogue[code]
    const standard = { type: payload.reference, title, status: reply.statusCode, detail: message }
    done(null, { ...standard, instance: `urn:request:${request_id}`, ...payload })
  })
}

interface Failure {
  error: { code: ErrorCode; message: string; request_id: string }
  reference: string
}

const isFailure = (payload: unknown): payload is Failure =>
  typeof payload === 'object' && payload !== null && 'error' in payload && 'reference' in payload
