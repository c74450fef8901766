// The HTTP server of a service before its routes: parser, limits of forms, and the hooks around every request. All
// differences between services are members of `ServerParts`. Routes: app.ts of each service. Tests: test/wire.test.ts
// of each.
import type { Server } from 'node:http'
import Fastify, {
  type FastifyBaseLogger,
  type FastifyHttpOptions,
  type FastifyInstance,
  type FastifyPluginAsync,
  LogController,
} from 'fastify'
import type { Logger } from 'pino'
import type { ApiError } from '../errors.ts'
import { openUnreadBodies, type UnreadBodyBounds } from './drain-body.ts'
import type { ErrorAnswers } from './error-answers.ts'
import { unavailable } from './error-handler.ts'
import { answerClientErrors, answerUnreadableAddress, refuseTunnels } from './parser-errors.ts'
import {
  answerInTurn,
  closeConnectionsOnStop,
  ignoreExpectations,
  logRequests,
  refuseCodedBodies,
  refuseWhileStopping,
  requestId,
  requireOneHost,
  secureHeaders,
} from './request-hooks.ts'
import { openRequestTelemetry } from './request-spans.ts'
import { DOCUMENTED } from './route-schema.ts'
import { sharedCompilers } from './shared-compilers.ts'

/** Largest JSON body; forms have limits of their own. */
const MAX_BODY_BYTES = 1024 * 1024

export interface ServerParts {
  name: string
  externalUrl: string
  log: Logger
  telemetry: Parameters<typeof openRequestTelemetry>[2]
  /** Header with a proxy's id of the request. */
  requestIdHeader: string | undefined
  answers: ErrorAnswers
  /** Makes the answer to a malformed or compressed request; `message` has no full stop. */
  refusal(status: 400 | 415, message: string): ApiError
  isStopping(): boolean
  /** Headers of every answer. */
  headers?: Record<string, string>
  unreadBodies?: Partial<UnreadBodyBounds>
}

/** Builds the server; nothing listens yet. `own` are the service's limits and its router's options. */
export function createHttpServer(parts: ServerParts, own: FastifyHttpOptions<Server>): FastifyInstance {
  const { answers, externalUrl, refusal } = parts
  const requestTelemetry = openRequestTelemetry(parts.name, externalUrl, parts.telemetry)
  const unreadBodies = openUnreadBodies(parts.unreadBodies)
  const app = Fastify({
    ...own,
    loggerInstance: parts.log as FastifyBaseLogger,
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: MAX_BODY_BYTES,
    http: { ...own.http, requireHostHeader: false },
    genReqId: requestId(parts.requestIdHeader),
    clientErrorHandler: answerClientErrors(answers, unreadBodies),
    frameworkErrors: requestTelemetry.observed(answerUnreadableAddress(answers, externalUrl)),
    return503OnClosing: false,
    schemaController: sharedCompilers,
    ajv: { customOptions: { coerceTypes: false, removeAdditional: false, keywords: [DOCUMENTED] } },
  })
  namePlugins(app)
  requestTelemetry.watch(app)
  answerInTurn(app)
  refuseWhileStopping(app, parts.isStopping, () => unavailable(answers, undefined))
  closeConnectionsOnStop(app)
  ignoreExpectations(app)
  refuseTunnels(app, answers)
  logRequests(app)
  secureHeaders(app, externalUrl, parts.headers)
  requireOneHost(app, () => refusal(400, 'A request has one Host header'))
  unreadBodies.watch(app)
  refuseCodedBodies(app, refusal)
  return app
}

type Register = (this: FastifyInstance, plugin: FastifyPluginAsync, options?: object) => FastifyInstance

/** Names each plugin. Fastify would compare it with every loaded module: a sixth of the work of building an app. */
function namePlugins(app: FastifyInstance): void {
  const register = app.register as unknown as Register
  const registerNamed: Register = function (plugin, options) {
    Object.assign(plugin, { [Symbol.for('fastify.display-name')]: plugin.name || 'scope' })
    return register.call(this, plugin, options)
  }
  app.register = registerNamed as unknown as FastifyInstance['register']
}
