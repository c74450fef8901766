import { jsonParser, withoutNulls } from '@services/common/http/json-parser'
import type { FastifyInstance } from 'fastify'
import { apiError } from '../../errors.ts'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Members of the body that null clears. */
    clearable?: readonly string[]
  }
}

/**
 * Parses bodies as JSON whatever the Content-Type says. Clients of the reference send null members, or a bare `null`,
 * for "not given", so top-level nulls are dropped; deeper ones delete a key. `clearable` ones of the route are kept.
 * Schemas refuse an empty body. An operation without a body ignores one, whatever it is: a client that sends its scope
 * there must not fail to sign out.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const parseJson = jsonParser(app, {
    broken: (cause) => apiError('bad_json', { cause }),
    unacceptable: (message) => apiError('validation_failed', { message }),
  })
  // The framework refuses a malformed type before any parser runs.
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    if (!/^[^\s/;]+\/[^\s/;]+/.test(headers['content-type'] ?? 'none/given'))
      headers['content-type'] = 'application/json'
    done()
  })
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0 || !request.routeOptions.schema?.body) return done(null, undefined)
    parseJson(request, body as Buffer, (error, json) => {
      if (error) return done(error)
      if (typeof json !== 'object' || Array.isArray(json)) return done(apiError('bad_json'))
      done(null, withoutNulls(json, request.routeOptions.config.clearable))
    })
  })
}
