import { jsonParser, withoutNulls } from '@services/common/json-body'
import type { FastifyInstance } from 'fastify'
import { apiError } from '../errors.ts'

/**
 * Bodies are JSON whatever the Content-Type says. Clients written for the reference send null for "not given", and a
 * bare `null` for "nothing given", so null members of the top level are dropped; deeper ones mean "delete this key".
 * An empty body is no body: routes that need one refuse it by their schema.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const parseJson = jsonParser(app, {
    broken: (cause) => apiError('bad_json', { cause }),
    unacceptable: (message) => apiError('validation_failed', { message }),
  })
  // The framework refuses a type that is none before any parser is asked.
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    if (!/^[^\s/;]+\/[^\s/;]+/.test(headers['content-type'] ?? 'none/given'))
      headers['content-type'] = 'application/json'
    done()
  })
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) return done(null, undefined)
    parseJson(request, body as Buffer, (error, json) => {
      if (error) return done(error)
      if (typeof json !== 'object' || Array.isArray(json)) return done(apiError('bad_json'))
      done(null, withoutNulls(json))
    })
  })
}
