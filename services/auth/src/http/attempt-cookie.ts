// The cookie that binds an attempt to sign in at a provider to the browser that began it. The one rule: it is set by a
// navigation to the host the provider sends the browser back to, and without it the provider's answer is worth nothing
// (RFC 9700 section 4.7). It gives no right to anything else.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { UUID } from '../db/uuid.ts'
import { cookiesOf, setCookie } from './cookies.ts'

/** Attempts of one browser at a time, in as many tabs; a further one ends the oldest. */
const MAX_ATTEMPTS = 10

export interface Attempt {
  /** The `state` the provider is given. */
  id: string
  lifetimeSeconds: number
  /** Whether browsers come by https, from where alone the cookie is then set and sent. */
  isSecure: boolean
  /** Whether the provider's page posts its answer, which no cookie that stays at home comes along with. */
  isPosted: boolean
}

/** `__Host-`: set by this very host over TLS, so that no neighbour in the domain can plant one. */
const SECURE_PREFIX = '__Host-auth-attempt-'
const PLAIN_PREFIX = 'auth-attempt-'

/** Gives the browser the cookie of an attempt, and takes those of its oldest attempts where it has many. */
export function bindBrowser(request: FastifyRequest, reply: FastifyReply, key: KeyObject, attempt: Attempt): void {
  const { id, lifetimeSeconds, isSecure, isPosted } = attempt
  const prefix = isSecure ? SECURE_PREFIX : PLAIN_PREFIX
  const name = prefix + id
  // Browsers send what they got first first (RFC 6265 section 5.4).
  const others = cookiesOf(request).filter(
    ([other]) => other !== name && other.startsWith(prefix) && UUID.test(other.slice(prefix.length)),
  )
  const tooMany = others.slice(0, Math.max(0, others.length - MAX_ATTEMPTS + 1)).slice(0, MAX_ATTEMPTS)
  for (const [other] of tooMany) setCookie(reply, { name: other, value: '', maxAge: 0, isSecure, sameSite: 'Lax' })
  const sameSite = isPosted && isSecure ? 'None' : 'Lax'
  setCookie(reply, { name, value: valueFor(key, prefix, id), maxAge: lifetimeSeconds, isSecure, sameSite })
}

/** Reports whether the browser has the cookie of this attempt, under the name it was given by. */
export function isBound(request: FastifyRequest, key: KeyObject, id: string): boolean {
  return cookiesOf(request).some(([name, value]) => {
    const prefix = [SECURE_PREFIX, PLAIN_PREFIX].find((known) => name === known + id)
    if (!prefix) return false
    const given = Buffer.from(value)
    const expected = Buffer.from(valueFor(key, prefix, id))
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

/** Takes the cookie of an attempt that is over. */
export function unbindBrowser(request: FastifyRequest, reply: FastifyReply, id: string): void {
  for (const [name] of cookiesOf(request)) {
    const isSecure = name === SECURE_PREFIX + id
    if (isSecure || name === PLAIN_PREFIX + id) {
      setCookie(reply, { name, value: '', maxAge: 0, isSecure, sameSite: 'Lax' })
    }
  }
}

/** A plain cookie has a value of its own: any host of the domain may plant one, but none is made for an attempt over TLS. */
const valueFor = (key: KeyObject, prefix: string, id: string) =>
  createHmac('sha256', key)
    .update(prefix === SECURE_PREFIX ? id : prefix + id)
    .digest('base64url')
