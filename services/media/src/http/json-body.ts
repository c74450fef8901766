import type { FastifyInstance } from 'fastify'

/** JSON as the framework reads it; but a DELETE that names the type and sends nothing has no body, as many clients do. */
export function acceptEmptyDeletes(app: FastifyInstance): void {
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.removeContentTypeParser('application/json')
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, body, done) => {
    if (body === '' && request.method === 'DELETE') return done(null, undefined)
    parseJson(request, body as string, done)
  })
}
