import type { FastifyRequest } from 'fastify'

/** True for browsers, and hardly any other client. */
export const acceptsHtml = ({ headers }: Pick<FastifyRequest, 'headers'>): boolean =>
  /\btext\/html\b/i.test(headers.accept ?? '')
