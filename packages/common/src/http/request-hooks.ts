// Hooks around every request of a service: ids, security headers, refusals before the handler, draining. Each function
// registers one behaviour of one RFC section or limit. Tests: request-hooks.test.ts; errors: error-handler.ts.
import { AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { ApiError } from '../errors.ts'

/** Longest inherited request id, which every log line repeats. */
const MAX_REQUEST_ID = 200

/** Makes request ids: the configured header's value, else a UUID. */
export const requestId = (header: string | undefined) => (request: IncomingMessage) => {
  const inherited = header ? request.headers[header] : undefined
  return typeof inherited === 'string' && inherited !== '' ? inherited.slice(0, MAX_REQUEST_ID) : randomUUID()
}

/**
 * Sets the headers of every answer. Pages replace the policy; caching is off by default because answers hold tokens.
 */
export function secureHeaders(app: FastifyInstance, externalUrl: string, own?: Record<string, string>): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers({ ...secureHeadersOf(request, externalUrl), ...own })
    done()
  })
}

/** HSTS for a year (RFC 6797), without subdomains: on a shared host they may belong to others and lack TLS. */
const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' }

export const secureHeadersOf = ({ id }: FastifyRequest, externalUrl: string) => ({
  ...(externalUrl.startsWith('https:') ? STRICT_TRANSPORT : {}),
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-request-id': id,
})

/**
 * Answers 503 to new requests while the process stops, and closes each connection after its answer: idle ones delay the
 * stop.
 */
export function refuseWhileStopping(app: FastifyInstance, isStopping: () => boolean, refusal: () => ApiError): void {
  app.addHook('onSend', (_request, reply, payload, done) => {
    if (isStopping()) reply.header('connection', 'close')
    done(null, payload)
  })
  app.addHook('onRequest', (request, _reply, done) => {
    done(isStopping() && !request.url.startsWith('/health') ? refusal() : undefined)
  })
}

/** Longest wait for requests in flight at a stop. `docker stop` kills after 10 s. */
export const DRAIN_WITHIN_MS = 9_000

/** Closes unused connections at a stop, others after `DRAIN_WITHIN_MS`; Node waits for unused and endless ones. */
export function closeConnectionsOnStop(app: FastifyInstance): void {
  const unused = new Set<Socket>()
  app.server.on('connection', (socket: Socket) => {
    unused.add(socket)
    socket.once('close', () => unused.delete(socket))
  })
  app.server.on('request', (request: IncomingMessage) => unused.delete(request.socket))
  app.addHook('preClose', (done) => {
    for (const socket of unused) socket.destroy()
    setTimeout(() => app.server.closeAllConnections(), DRAIN_WITHIN_MS).unref()
    done()
  })
}

/** Pipelined requests that may wait on a connection; browsers and libraries send none. */
const MAX_SENT_AHEAD = 16

/** Handles pipelined requests one by one (RFC 9112 9.3.2): Node delivers all at once. Too many close the connection. */
export function answerInTurn(app: FastifyInstance): void {
  const inLine = new WeakMap<Socket, (() => void)[]>()
  app.addHook('onRequest', ({ raw: { socket } }, reply, done) => {
    const waiting = inLine.get(socket)
    if (waiting && waiting.length >= MAX_SENT_AHEAD) return void socket.destroy()
    reply.raw.once('close', () => {
      const next = inLine.get(socket)?.shift()
      if (!next) inLine.delete(socket)
      else if (!socket.destroyed) next()
    })
    // Bound to its request, because it is called when another one ends.
    if (waiting) waiting.push(AsyncResource.bind(() => done()))
    else {
      inLine.set(socket, [])
      done()
    }
  })
}

/** Ignores unknown expectations (RFC 9110 10.1.1); Node's refusal has no body. Node itself handles 100-continue. */
export function ignoreExpectations(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
}

/** Logs one line per answered request; Fastify's two lines cost twice as much. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', (request, reply, done) => {
    if (request.routeOptions.logLevel !== 'silent') {
      const { method, routeOptions } = request
      const { url: route = 'unknown' } = routeOptions
      request.log.info({ method, route, status: reply.statusCode, ms: Math.round(reply.elapsedTime) }, 'request')
    }
    done()
  })
}

/**
 * Requires exactly one Host header (RFC 9112 3.2): a proxy might read another of two. Needs `requireHostHeader: false`,
 * because Node's refusal has no body.
 */
export function requireOneHost(app: FastifyInstance, refusal: () => ApiError): void {
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    let hosts = 0
    for (let at = 0; at < raw.rawHeaders.length; at += 2) {
      if (raw.rawHeaders[at]?.toLowerCase() === 'host') hosts++
    }
    const isFine = hosts === 1 || (hosts === 0 && raw.httpVersion === '1.0')
    done(isFine ? undefined : refusal())
  })
}

export const hasBody = (headers: IncomingHttpHeaders): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

const COMPRESSED = /\b(gzip|deflate|compress|br|zstd)\b/i

/**
 * Refuses compressed bodies (RFC 9110 8.4) and transfer codings other than `chunked`, which would be read as broken
 * bodies. The latter is 400 instead of the 501 of RFC 9112 6.1: callers must not be able to cause server errors, which
 * raise alarms.
 */
export function refuseCodedBodies(
  app: FastifyInstance,
  refusal: (status: 400 | 415, message: string) => ApiError,
): void {
  app.addHook('onRequest', ({ headers }, reply, done) => {
    if (!hasBody(headers)) return done()
    if (COMPRESSED.test(headers['content-encoding'] ?? '')) {
      reply.header('accept-encoding', 'identity')
      return done(refusal(415, 'A body must not be compressed'))
    }
    const isCoded = COMPRESSED.test(headers['transfer-encoding'] ?? '')
    done(isCoded ? refusal(400, 'A body has no transfer coding but chunked') : undefined)
  })
}

/** Bodies with a speed limit of their own: forms and resumable uploads. */
const LONG_BODIES = /^(multipart\/|application\/offset\+octet-stream)/i

/** Refuses requests whose body does not arrive within `withinMs`. */
export function endSlowBodies(app: FastifyInstance, withinMs: number, refusal: () => ApiError): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { headers } = request
    if (hasBody(headers) && !LONG_BODIES.test(headers['content-type'] ?? '')) {
      endSlowBody(request, reply, { withinMs, refusal })
    }
    done()
  })
}

/** The same for one request, such as a short form. */
export function endSlowBody(
  { raw }: FastifyRequest,
  reply: FastifyReply,
  { withinMs, refusal }: { withinMs: number; refusal: () => ApiError },
): void {
  const timer = setTimeout(() => {
    if (!raw.complete && !reply.sent) reply.send(refusal())
  }, withinMs)
  raw.once('close', () => clearTimeout(timer))
}
