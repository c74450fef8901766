import { jsonParser } from '@services/common/json-body'
import type { FastifyInstance } from 'fastify'
import { apiError } from '../errors.ts'

/** Bodies that say they are JSON; but a DELETE that names the type and sends nothing has no body, as many clients do. */
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
