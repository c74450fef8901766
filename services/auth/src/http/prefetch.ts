import type { FastifyRequest } from 'fastify'

/** Reports whether a browser prefetches. An address with an effect then answers 204 and spends nothing. */
export const isPrefetch = ({ headers }: FastifyRequest): boolean =>
  /prefetch|preview/i.test(`${headers.purpose ?? ''} ${headers['sec-purpose'] ?? ''}`)
