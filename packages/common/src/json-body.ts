import { isUtf8 } from 'node:buffer'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { ApiError } from './errors.ts'
import { isStorable, MAX_DEPTH } from './storable.ts'

export interface JsonRefusals {
  /** It is no JSON, or no UTF-8. */
  broken(cause: unknown): ApiError
  /** It is JSON, but `message` says what it must not hold. */
  unacceptable(message: string): ApiError
}

type Done = (error: Error | null, json?: unknown) => void

/** A content type parser for bodies of JSON in UTF-8 that PostgreSQL can store, and that name nothing of JavaScript's own. */
export function jsonParser(app: FastifyInstance, { broken, unacceptable }: JsonRefusals) {
  const parse = app.getDefaultJsonParser('error', 'error')
  return (request: FastifyRequest, body: Buffer, done: Done) => {
    // Decoding would make U+FFFD of all that is broken, and with it one password of many. 50 ns (measured).
    if (!isUtf8(body)) return done(broken('not UTF-8'))
    const text = body.toString()
    parse(request, text, (error, json) => {
      if (error && isJson(text)) return done(unacceptable('JSON must not name __proto__ or constructor.prototype'))
      if (error) return done(broken(error))
      if (isSuspicious(text) && !isStorable(json))
        return done(unacceptable('Text must not hold NUL or half characters, nor JSON be nested so deep'))
      done(null, json)
    })
  }
}

/** Many clients write null for "not given"; no body at all is one without anything. */
export function withoutNulls(body: unknown): unknown {
  if (body === null || body === undefined) return {}
  if (typeof body !== 'object' || Array.isArray(body)) return body
  return Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null))
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}

/** Cheap first look: NUL and half a surrogate pair can only arrive as escapes, depth only with that many brackets. */
const isSuspicious = (text: string) =>
  /\\u(0000|d[89a-f])/i.test(text) || (text.match(/[[{]/g)?.length ?? 0) > MAX_DEPTH
