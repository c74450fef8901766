// The time a request has. The one rule: once it was answered that it took too long, it changes nothing any more.
import { AsyncLocalStorage } from 'node:async_hooks'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { RequestTimeout } from './errors.ts'

export interface Deadline {
  isOver: boolean
  /** Whether it was the body's turn: until then it waits in the connection, however fast it was sent. */
  readsBody: boolean
  /** What to do to the statements that run when it is over. */
  running: Set<() => void>
  /** What the request is answered with instead of an error, where its route says so. */
  answer?: (timeout: RequestTimeout) => void
}

const current = new AsyncLocalStorage<Deadline | undefined>()

/** The deadline of the request this is done for; undefined outside of one. */
export const currentDeadline = (): Deadline | undefined => current.getStore()

/** Runs what must be done although the request may be over: tidying up after it. */
export const regardlessOfDeadline = <Result>(work: () => Result): Result => current.run(undefined, work)

/** Whether the request this is done for was answered that it took too long: whoever would answer it leaves it at that. */
export const isPastDeadline = (): boolean => current.getStore()?.isOver ?? false

/** Has the request answered by `answer`, which sends synchronously, and not by an error, if it takes too long. */
export function answerTimeoutBy(answer: (timeout: RequestTimeout) => void): void {
  const deadline = current.getStore()
  if (deadline) deadline.answer = answer
}

type StartTimer = (end: () => void, ms: number) => NodeJS.Timeout

/**
 * Answers every request that takes longer, whatever it waits for: the database's statements end and no other begins
 * (database.ts), so that an open transaction rolls back. Fastify's own `handlerTimeout` stops its clock as soon as the body
 * was read. Register it before other hooks. `startTimer`: the clock of the limit.
 */
export function answerWithin(app: FastifyInstance, ms: number, startTimer: StartTimer = setTimeout): void {
  const requests = new WeakMap<FastifyRequest, { deadline: Deadline; timer: NodeJS.Timeout }>()
  app.addHook('onRequest', (request, reply, done) => {
    const deadline: Deadline = { isOver: false, readsBody: false, running: new Set() }
    const timer = startTimer(() => {
      deadline.isOver = true
      for (const abandon of deadline.running) abandon()
      if (reply.sent) return
      whisperOf(reply)
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
  // A body arrives by events of its connection, which know nothing of the request.
  app.addHook('preValidation', (request, _reply, done) => {
    current.run(requests.get(request)?.deadline, done)
  })
  app.addHook('onResponse', (request, _reply, done) => {
    clearTimeout(requests.get(request)?.timer)
    done()
  })
}

/**
 * What a hook or handler still throws was brought about by the deadline, which has a line of its own: Fastify, which logs by
 * `reply.log`, would call it an error of the code. Ours is `request.log`.
 */
function whisperOf(reply: FastifyReply): void {
  const { debug } = reply.log
  reply.log = Object.assign(Object.create(reply.log), { warn: debug, error: debug })
}
