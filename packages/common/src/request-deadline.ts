// The time limit of a request. A request that was answered with a timeout changes nothing any more.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RequestTimeout } from './errors.ts'

export interface Deadline {
  hasExpired: boolean
  /** Whether the body is being read; until then it waits in the connection, however fast it was sent. */
  readsBody: boolean
  /** Callbacks that cancel the running statements. */
  running: Set<() => void>
  /** Closes when the answer is complete or the client has disconnected. */
  response: ServerResponse
  /** The route's own answer, in place of an error. */
  answer?: (timeout: RequestTimeout) => void
}

const current = new AsyncLocalStorage<Deadline | undefined>()

export const currentDeadline = (): Deadline | undefined => current.getStore()

/** Runs clean-up that must happen even after the deadline. */
export const regardlessOfDeadline = <Result>(work: () => Result): Result => current.run(undefined, work)

/** Whether the current request was answered with a timeout, so that its handler must not answer. */
export const isPastDeadline = (): boolean => current.getStore()?.hasExpired ?? false

/** Sets the answer to a timeout of the current request; `answer` sends synchronously. */
export function answerTimeoutBy(answer: (timeout: RequestTimeout) => void): void {
  const deadline = current.getStore()
  if (deadline) deadline.answer = answer
}

/** Returns a signal that aborts with `reason` when the current request's client disconnects; undefined outside one. */
export function disconnectSignal(reason: () => Error): AbortSignal | undefined {
  const response = current.getStore()?.response
  if (!response) return undefined
  const controller = new AbortController()
  const abort = () => controller.abort(reason())
  if (response.closed) abort()
  else response.once('close', abort)
  return controller.signal
}

type StartTimer = (end: () => void, ms: number) => NodeJS.Timeout

/**
 * Answers a request longer than `ms` with a RequestTimeout and cancels its statements (connection.ts); a
 * transaction rolls back. Fastify's `handlerTimeout` stops its clock once the body is read. Register it before hooks
 * that run statements.
 */
export function answerWithin(app: FastifyInstance, ms: number, startTimer: StartTimer = setTimeout): void {
  const requests = new WeakMap<FastifyRequest, { deadline: Deadline; timer: NodeJS.Timeout }>()
  app.addHook('onRequest', (request, reply, done) => {
    const deadline: Deadline = { hasExpired: false, readsBody: false, running: new Set(), response: reply.raw }
    const timer = startTimer(() => {
      deadline.hasExpired = true
      for (const cancel of deadline.running) cancel()
      if (reply.sent) return
      quieten(reply)
      if (reply.raw.headersSent) reply.raw.destroy()
      else (deadline.answer ?? ((timeout) => reply.send(timeout)))(new RequestTimeout(deadline.readsBody))
    }, ms).unref()
    requests.set(request, { deadline, timer })
    current.run(deadline, done)
  })
  app.addHook('preParsing', (request, _reply, payload, done) => {
    const started = requests.get(request)
    if (started) started.deadline.readsBody = true
    done(null, payload)
  })
  // The body's events belong to the connection and carry no request context.
  app.addHook('preValidation', (request, _reply, done) => {
    current.run(requests.get(request)?.deadline, done)
  })
  app.addHook('onResponse', (request, _reply, done) => {
    clearTimeout(requests.get(request)?.timer)
    done()
  })
}

/** Lowers Fastify's `reply.log` to debug: the deadline, logged already, causes later errors. We use `request.log`. */
function quieten(reply: FastifyReply): void {
  const { debug } = reply.log
  reply.log = Object.assign(Object.create(reply.log), { warn: debug, error: debug })
}
