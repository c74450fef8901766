import type { FastifyInstance } from 'fastify'
import { type ErrorCode, errorCatalogue } from '../errors.ts'

const PROBLEM = 'application/problem+json'

/** The type by name, without a quality of zero; a wildcard does not ask for it. */
const ASKS_FOR_PROBLEM = /application\/problem\+json(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i

/**
 * Answers failures in the form of RFC 9457 when the Accept header names it (contract/media.md 2.6). The members of our
 * own form stay, so that one client can read both.
 */
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
