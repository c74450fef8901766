import { AsyncResource } from 'node:async_hooks'
import { randomUUID } from 'node:crypto'
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ApiError } from './errors.ts'

/** Longest inherited request id; it goes into every log line. */
const MAX_REQUEST_ID = 200

/** Takes the request's id from a header, if one is configured and sent; a new UUID otherwise. */
export const requestId = (header: string | undefined) => (request: IncomingMessage) => {
  const inherited = header ? request.headers[header] : undefined
  return typeof inherited === 'string' && inherited !== '' ? inherited.slice(0, MAX_REQUEST_ID) : randomUUID()
}

/**
 * Headers of every answer; pages replace the policy by their own. Tokens must not stay in caches, so nothing does by default.
 * `externalUrl`: where browsers find the service.
 */
export function secureHeaders(app: FastifyInstance, externalUrl: string): void {
  app.addHook('onRequest', (request, reply, done) => {
    reply.headers(secureHeadersOf(request, externalUrl))
    done()
  })
}

/**
 * A year in which browsers ask this host by TLS alone (RFC 6797). Not for the names below it: where a service shares a host,
 * these are not its own, and some may have no TLS.
 */
const STRICT_TRANSPORT = { 'strict-transport-security': 'max-age=31536000' }

/** The same for what is answered before any hook. */
export const secureHeadersOf = ({ id }: FastifyRequest, externalUrl: string) => ({
  ...(externalUrl.startsWith('https:') ? STRICT_TRANSPORT : {}),
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'x-content-type-options': 'nosniff',
  'x-request-id': id,
})

/**
 * While the process drains, requests on kept connections get a clear 503. Every answer then ends its connection, those
 * of requests accepted before too: an idle connection would hold up the stop until it times out.
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

/** Longest time a stop waits for requests in flight; what still runs then is cut off. `docker stop` kills after 10 s. */
export const DRAIN_WITHIN_MS = 9_000

/**
 * Keeps a stop from waiting for connections on which nothing happens. Node closes those that have answered a request, but
 * not those opened ahead of need by balancers and browsers, and a request that never ends would be waited for for ever.
 */
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

/** Requests that may wait on a connection for those before them; browsers and libraries send none ahead. */
const MOST_SENT_AHEAD = 16

/**
 * RFC 9112 9.3.2 lets a client send requests before those ahead of them are answered. Node hands them over all at once, as many
 * as one connection brings: here one is worked on at a time, and a connection that sends too many ahead ends.
 */
export function answerInTurn(app: FastifyInstance): void {
  const inLine = new WeakMap<Socket, (() => void)[]>()
  app.addHook('onRequest', ({ raw: { socket } }, reply, done) => {
    const waiting = inLine.get(socket)
    if (waiting && waiting.length >= MOST_SENT_AHEAD) return void socket.destroy()
    reply.raw.once('close', () => {
      const next = inLine.get(socket)?.shift()
      if (!next) inLine.delete(socket)
      else if (!socket.destroyed) next()
    })
    // Bound to its own request: it is called while another one ends.
    if (waiting) waiting.push(AsyncResource.bind(() => done()))
    else {
      inLine.set(socket, [])
      done()
    }
  })
}

/** RFC 9110 10.1.1 lets a server pass over what it does not know; Node's own refusal has no body. It meets 100-continue. */
export function ignoreExpectations(app: FastifyInstance): void {
  app.server.on('checkExpectation', (request, response) => app.server.emit('request', request, response))
}

/** One line per request, when it is answered: the framework's own two cost twice as much and say the same. */
export function logRequests(app: FastifyInstance): void {
  app.addHook('onResponse', (request, reply, done) => {
    if (request.routeOptions.logLevel !== 'silent') {
      const { method, url = 'unknown' } = request.routeOptions
      request.log.info({ method, route: url, status: reply.statusCode, ms: Math.round(reply.elapsedTime) }, 'request')
    }
    done()
  })
}

/**
 * RFC 9112 3.2: a request has one Host. Which of two counts would be a matter of taste, and ours and a proxy's may
 * differ. For servers with `requireHostHeader: false`, whose own refusal has no body.
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

/** Whether the headers announce a body. */
export const hasBody = (headers: IncomingHttpHeaders): boolean =>
  headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined

const COMPRESSED = /\b(gzip|deflate|compress|br|zstd)\b/i

/**
 * Bodies are read as they come, so a compressed one would be called broken (RFC 9110 8.4), and a transfer coding beside
 * `chunked` be taken for a part of it. The latter is 400, not the 501 of RFC 9112 6.1: failures that a caller may cause at
 * will are none of ours, and would raise alarms.
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

/** Bodies that may take long, and watch their own speed: forms, and pieces of resumable uploads. */
const LONG_BODIES = /^(multipart\/|application\/offset\+octet-stream)/i

/** Answers requests whose body does not arrive within `withinMs`. */
export function endSlowBodies(app: FastifyInstance, withinMs: number, refusal: () => ApiError): void {
  app.addHook('onRequest', (request, reply, done) => {
    const { raw, headers } = request
    if (hasBody(headers) && !LONG_BODIES.test(headers['content-type'] ?? '')) {
      const timer = setTimeout(() => {
        if (!raw.complete && !reply.sent) reply.send(refusal())
      }, withinMs)
      raw.once('close', () => clearTimeout(timer))
    }
    done()
  })
}
