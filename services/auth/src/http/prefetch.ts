import type { FastifyRequest } from 'fastify'

/** Reports whether a browser looks ahead. An address that has an effect answers 204 then and spends nothing. */
export const isPrefetch = ({ headers }: FastifyRequest): boolean =>
  /prefetch|preview/i.test(`${headers.purpose ?? ''} ${headers['sec-purpose'] ?? ''}`)
