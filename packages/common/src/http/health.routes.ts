import type {} from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { withTimeout } from '../concurrency/with-timeout.ts'
import { isWritable } from '../database/check-idle-connections.ts'

const StateShape = {
  title: 'State',
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string', description: '`ok`, or the reason why not.' } },
  additionalProperties: true,
}

const Warnings = { type: 'array', items: { type: 'string' }, description: 'Faults that only an operator can repair.' }

/** Wait for the database's answer; probes usually give up after 1 s to 5 s. */
const READY_WITHIN_MS = 2_000

/**
 * Registers `/health/live`, always 200, and `/health/ready`: 503 while stopping or without a writable database.
 * `warnings` are public. Only an operator can repair their causes, so the status stays 200.
 */
export function healthRoutes(
  app: FastifyInstance,
  options: { pool: pg.Pool; isStopping: () => boolean; warnings?: () => readonly string[] },
): void {
  const route = (operationId: string, summary: string, response: object) =>
    ({ logLevel: 'silent', schema: { operationId, tags: ['service'], summary, response } }) as const
  app.get('/health/live', route('getLiveness', 'Whether the process answers', { 200: StateShape }), async () => ({
    status: 'ok',
  }))
  const properties = { ...StateShape.properties, warnings: Warnings }
  const states = {
    200: options.warnings ? { ...StateShape, title: 'Readiness', properties } : StateShape,
    503: StateShape,
  }
  const ready = route('getReadiness', 'Whether a database that accepts writes answers too', states)
  app.get('/health/ready', ready, async (_request, reply) => {
    if (options.isStopping()) return reply.code(503).send({ status: 'stopping' })
    const isReady = await withTimeout(READY_WITHIN_MS, isWritable(options.pool))
    if (isReady !== true) return reply.code(503).send({ status: 'database unavailable' })
    const warnings = options.warnings?.() ?? []
    return { status: 'ok', ...(warnings.length > 0 && { warnings }) }
  })
}
