import type {} from '@fastify/swagger'
import type { FastifyInstance } from 'fastify'
import type pg from 'pg'
import { isWritable } from './idle-connections.ts'

const StateShape = {
  title: 'State',
  type: 'object',
  required: ['status'],
  properties: { status: { type: 'string', description: '`ok`, or the reason why not.' } },
  additionalProperties: true,
}

/** Wait for the database's answer; probes usually give up after 1 s to 5 s. */
const READY_WITHIN_MS = 2_000

/**
 * `/health/live` answers always. `/health/ready` answers 503 while the process stops or no writable database answers, so that a
 * load balancer sends no more requests.
 */
export function healthRoutes(app: FastifyInstance, options: { pool: pg.Pool; isStopping: () => boolean }): void {
  app.get(
    '/health/live',
    {
      logLevel: 'silent',
      schema: {
        operationId: 'getLiveness',
        tags: ['service'],
        summary: 'Whether the process answers',
        response: { 200: StateShape },
      },
    },
    async () => ({ status: 'ok' }),
  )
  app.get(
    '/health/ready',
    {
      logLevel: 'silent',
      schema: {
        operationId: 'getReadiness',
        tags: ['service'],
        summary: 'Whether a database that takes writes answers too',
        response: { 200: StateShape, 503: StateShape },
      },
    },
    async (_request, reply) => {
      if (options.isStopping()) return reply.code(503).send({ status: 'stopping' })
      const timeout = AbortSignal.timeout(READY_WITHIN_MS)
      const gone = new Promise<false>((resolve) => timeout.addEventListener('abort', () => resolve(false)))
      const answers = isWritable(options.pool)
      if (!(await Promise.race([answers, gone]))) return reply.code(503).send({ status: 'database unavailable' })
      return { status: 'ok' }
    },
  )
}
