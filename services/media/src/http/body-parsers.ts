import { jsonParser } from '@services/common/http/json-parser'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { apiError } from '../errors.ts'

/** Parses JSON bodies. Many clients send a DELETE with the type and no body, which is accepted. */
export function acceptJsonBodies(app: FastifyInstance): void {
  const parseJson = jsonParser(app, {
    broken: (cause) => apiError('invalid_json', { cause }),
    unacceptable: (message) => apiError('invalid_request', { message: `${message}.` }),
  })
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0 && request.method === 'DELETE') return done(null, undefined)
    parseJson(request, body as Buffer, done)
  })
}

/** Accepts the usual encoding of HTML forms; of a repeated field the last value counts. */
export function acceptSmallForms(app: FastifyInstance, bodyLimit: number): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit },
    async (_request: FastifyRequest, body: string) => Object.fromEntries(new URLSearchParams(body)),
  )
}
