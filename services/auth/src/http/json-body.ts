import type { FastifyInstance, FastifyRequest } from 'fastify'
import { apiError } from '../errors.ts'

/**
 * Bodies are JSON whatever the Content-Type says. Clients written for the reference send null for "not given", and a
 * bare `null` for "nothing given", so null members of the top level are dropped; deeper ones mean "delete this key".
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('*', { parseAs: 'string' }, (request, text, done) => {
    if (text === '')
      return isForm(request) ? done(null, {}) : done(apiError('bad_json', { message: 'The body is empty' }))
    parseJson(request, text as string, (error, json) => {
      if (error) return done(apiError('bad_json', { cause: error }))
      if (json !== null && (typeof json !== 'object' || Array.isArray(json))) return done(apiError('bad_json'))
      done(null, withoutNulls((json ?? {}) as Record<string, unknown>))
    })
  })
}

/** `curl -d` labels JSON as a form, so only an empty body is taken for one: the button of the confirmation page. */
const isForm = (request: FastifyRequest) => request.headers['content-type'] === 'application/x-www-form-urlencoded'

const withoutNulls = (body: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
