import type { FastifyInstance } from 'fastify'
import { apiError } from '../errors.ts'

/**
 * Bodies are JSON whatever the Content-Type says. Clients written for the reference send null for "not given", and a
 * bare `null` for "nothing given", so null members of the top level are dropped; deeper ones mean "delete this key".
 * An empty body is no body: routes that need one refuse it by their schema.
 */
export function acceptJsonBodies(app: FastifyInstance): void {
  app.removeAllContentTypeParsers()
  const parseJson = app.getDefaultJsonParser('error', 'error')
  app.addContentTypeParser('*', { parseAs: 'string' }, (request, text, done) => {
    if (text === '') return done(null, undefined)
    parseJson(request, text as string, (error, json) => {
      if (error) return done(apiError('bad_json', { cause: error }))
      if (typeof json !== 'object' || Array.isArray(json)) return done(apiError('bad_json'))
      if (MAY_BE_UNSTORABLE.test(text as string) && hasUnstorableText(json)) {
        return done(apiError('validation_failed', { message: 'Text must not contain NUL or half characters' }))
      }
      done(null, withoutNulls((json ?? {}) as Record<string, unknown>))
    })
  })
}

const withoutNulls = (body: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))

/** PostgreSQL cannot store NUL or half a surrogate pair; both can only arrive as escapes, which are rare enough to search. */
const MAY_BE_UNSTORABLE = /\\u(0000|d[89a-f])/i

function hasUnstorableText(value: unknown): boolean {
  if (typeof value === 'string') return value.includes('\0') || !value.isWellFormed()
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, member]) => hasUnstorableText(key) || hasUnstorableText(member))
}
