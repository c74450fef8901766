import type { FastifyInstance, FastifyRequest } from 'fastify'

/** Accepts the usual encoding of HTML forms; of a repeated field the last value counts. */
export function acceptSmallForms(app: FastifyInstance, bodyLimit: number): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit },
    async (_request: FastifyRequest, body: string) => Object.fromEntries(new URLSearchParams(body)),
  )
}
