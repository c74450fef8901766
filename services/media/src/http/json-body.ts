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

/** Many clients write null for "not given"; no body at all is one without anything. */
export function withoutNulls(body: unknown): unknown {
  if (body === null || body === undefined) return {}
  if (typeof body !== 'object' || Array.isArray(body)) return body
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
}
