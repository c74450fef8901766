// The form of a service's error answers, which its catalogue fills in. Handlers: error-handler.ts, parser-errors.ts.
import type { IncomingHttpHeaders } from 'node:http'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { ApiError } from '../errors.ts'

/** Failures outside of handlers, common to all services. */
export type CommonFailure =
  | 'invalid_json'
  | 'invalid_request'
  | 'invalid_field'
  | 'body_too_large'
  | 'headers_too_large'
  | 'unsupported_media_type'
  | 'not_found'
  | 'method_not_allowed'
  /** The client sent too slowly; `timeout` is the service's failure. */
  | 'too_slow'
  | 'timeout'
  | 'unavailable'
  | 'unexpected'

export interface ErrorAnswers {
  /** Maps a common failure to the service's error; `detail` is public. */
  common(failure: CommonFailure, detail: string | undefined, cause: unknown): ApiError
  /** Maps an error of a plugin by `error.code`; undefined when unknown. */
  plugin?(error: FastifyError): ApiError | undefined
  /** Renders body and headers. `sent` has the request's headers, if there is a request. */
  form(
    error: ApiError,
    requestId: string,
    sent: IncomingHttpHeaders,
  ): { body: object; headers?: Record<string, string> }
}

/** Sends an error in the service's form; its status and its own headers are already set. */
export function sendInForm(
  answers: ErrorAnswers,
  error: ApiError,
  request: FastifyRequest,
  reply: FastifyReply,
): FastifyReply {
  const { headers = {}, body } = answers.form(error, request.id, request.headers)
  return reply.type('application/json; charset=utf-8').headers(headers).send(body)
}
