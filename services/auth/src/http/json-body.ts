import { isUtf8 } from 'node:buffer'
import type { FastifyInstance } from 'fastify'
import { isStorable, MAX_DEPTH } from '../db/storable.ts'
import { apiError } from '../errors.ts'

/**
 * Bodies are JSON whatever the Content-Type says. Clients written for the reference send null for "not given", and a
 * bare `null` for "nothing given", so null members of the top level are dropped; deeper ones mean "delete this key".
 * An empty body is no body: routes that need one refuse it by their schema.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const parseJson = app.getDefaultJsonParser('error', 'error')
  // The framework refuses a type that is none before any parser is asked.
  app.addHook('onRequest', ({ headers }, _reply, done) => {
    if (!/^[^\s/;]+\/[^\s/;]+/.test(headers['content-type'] ?? 'none/given'))
      headers['content-type'] = 'application/json'
    done()
  })
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, body, done) => {
    if (body.length === 0) return done(null, undefined)
    // Decoding would make U+FFFD of all that is broken, and with it one password of many. 50 ns (measured).
    if (!isUtf8(body as Buffer)) return done(apiError('bad_json', { cause: 'not UTF-8' }))
    const text = body.toString()
    parseJson(request, text, (error, json) => {
      if (error) return done(apiError('bad_json', { cause: error }))
      if (typeof json !== 'object' || Array.isArray(json)) return done(apiError('bad_json'))
      if (isSuspicious(text) && !isStorable(json)) {
        return done(
          apiError('validation_failed', {
            message: 'Text must not hold NUL or half characters, nor JSON be nested so deep',
          }),
        )
      }
      done(null, withoutNulls((json ?? {}) as Record<string, unknown>))
    })
  })
}

const withoutNulls = (body: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))

/** Cheap first look: NUL and half a surrogate pair can only arrive as escapes, depth only with that many brackets. */
const isSuspicious = (text: string) =>
  /\\u(0000|d[89a-f])/i.test(text) || (text.match(/[[{]/g)?.length ?? 0) > MAX_DEPTH
