// Failures before a request reaches a route, which Node's parser and Fastify's router would answer in shapes of their
// own. Every answer of a service has the service's form. All other failures: error-handler.ts.
import { randomUUID } from 'node:crypto'
import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyError, FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { UnreadBodies } from './drain-body.ts'
import { type CommonFailure, type ErrorAnswers, sendInForm } from './error-answers.ts'
import { secureHeadersOf } from './request-hooks.ts'

const FAILURE_BY_PARSER_CODE: Record<string, CommonFailure> = {
  ERR_HTTP_REQUEST_TIMEOUT: 'too_slow',
  HPE_HEADER_OVERFLOW: 'headers_too_large',
  HPE_CHUNK_EXTENSIONS_OVERFLOW: 'body_too_large',
}

/** Fastify's `clientErrorHandler`: bytes that are no HTTP, headers that are too long or too slow. */
export const answerClientErrors =
  (answers: ErrorAnswers, unreadBodies: UnreadBodies) =>
  (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (unreadBodies.isReadToItsEnd(socket)) {
      socket.destroy()
      return
    }
    // The connection is broken, or half an answer is already sent.
    if (error.code === 'ECONNRESET' || !socket.writable || hasBegunToAnswer(socket)) {
      socket.destroySoon()
      return
    }
    const answer = rawAnswer(answers, FAILURE_BY_PARSER_CODE[error.code ?? ''] ?? 'invalid_request')
    // A client that is too slow has no unread bytes.
    if (error.code === 'ERR_HTTP_REQUEST_TIMEOUT') {
      socket.write(answer)
      socket.destroySoon()
    } else unreadBodies.endUnreadable(socket, answer)
  }

/** Answers CONNECT, whose connection Node would close without an answer. */
export function refuseTunnels(app: FastifyInstance, answers: ErrorAnswers): void {
  app.server.on('connect', (_request, socket) => {
    socket.on('error', () => {})
    socket.end(rawAnswer(answers, 'invalid_request'))
  })
}

/** Reads Node's private `_httpMessage`: the answer being written to a socket (parser-errors.test.ts). */
function hasBegunToAnswer(socket: Socket): boolean {
  const { _httpMessage: answer } = socket as Socket & { _httpMessage?: { headersSent: boolean } | null }
  return answer?.headersSent === true
}

function rawAnswer(answers: ErrorAnswers, failure: CommonFailure): string {
  const error = answers.common(failure, undefined, undefined)
  const requestId = randomUUID()
  const { headers = {}, body } = answers.form(error, requestId, {})
  const text = JSON.stringify(body)
  const lines = {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-request-id': requestId,
    connection: 'close',
    ...headers,
  }
  const head = Object.entries(lines).map(([name, value]) => `${name}: ${value}\r\n`)
  return `HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${head.join('')}\r\n${text}`
}

/** Fastify's `frameworkErrors`: paths that cannot be decoded, such as `/%E0%A4%A`, answered before any hook. */
export const answerUnreadableAddress =
  (answers: ErrorAnswers, externalUrl: string) =>
  (error: FastifyError, request: FastifyRequest, reply: FastifyReply): void => {
    const failure = error.code === 'FST_ERR_MAX_PARAM_LENGTH' ? 'not_found' : 'invalid_request'
    const answer = answers.common(failure, undefined, error)
    reply.code(answer.status).headers(secureHeadersOf(request, externalUrl))
    sendInForm(answers, answer, request, reply)
  }
