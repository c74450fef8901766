// Cookie that binds a sign-in attempt at a provider to the browser that began it; it grants nothing else. Only a
// navigation to the callback's host sets it, and without it the provider's answer is worthless (RFC 9700 4.7).
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { cookiesOf, removeCookie, setCookie } from '@services/common/pages/cookies'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { UUID } from '../../db/uuid.ts'

/** Concurrent attempts of one browser, in as many tabs; a further one ends the oldest. */
const MAX_ATTEMPTS = 10

export interface Attempt {
  /** `state` sent to the provider. */
  id: string
  lifetimeSeconds: number
  /** Whether browsers use https; the cookie is then set and sent only over it. */
  isSecure: boolean
  /** Whether the provider answers by a cross-site form post, which carries no `Lax` cookie. */
  isPosted: boolean
}

/** `__Host-`: set by this host over TLS, so that no other host of the domain can plant one. */
const SECURE_PREFIX = '__Host-auth-attempt-'
const PLAIN_PREFIX = 'auth-attempt-'

/** Sets the cookie of an attempt, and removes those of the oldest attempts beyond the limit. */
export function bindBrowser(request: FastifyRequest, reply: FastifyReply, key: KeyObject, attempt: Attempt): void {
  const { id, lifetimeSeconds, isSecure, isPosted } = attempt
  const prefix = isSecure ? SECURE_PREFIX : PLAIN_PREFIX
  const name = prefix + id
  // Browsers send the oldest cookie first (RFC 6265 5.4).
  const others = cookiesOf(request).filter(
    ([other]) => other !== name && other.startsWith(prefix) && UUID.test(other.slice(prefix.length)),
  )
  const tooMany = others.slice(0, Math.max(0, others.length - MAX_ATTEMPTS + 1)).slice(0, MAX_ATTEMPTS)
  for (const [other] of tooMany) removeCookie(reply, other, isSecure)
  const sameSite = isPosted && isSecure ? 'None' : 'Lax'
  setCookie(reply, { name, value: valueFor(key, prefix, id), maxAge: lifetimeSeconds, isSecure, sameSite })
}

/** Reports whether the browser has the cookie of this attempt, under the name it was set by. */
export function isBound(request: FastifyRequest, key: KeyObject, id: string): boolean {
  return cookiesOf(request).some(([name, value]) => {
    const prefix = [SECURE_PREFIX, PLAIN_PREFIX].find((known) => name === known + id)
    if (!prefix) return false
    const given = Buffer.from(value)
    const expected = Buffer.from(valueFor(key, prefix, id))
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

export function unbindBrowser(request: FastifyRequest, reply: FastifyReply, id: string): void {
  // A browser may hold a name once for each path, and each removal is a header.
  for (const name of new Set(cookiesOf(request).map(([name]) => name))) {
    if (name === SECURE_PREFIX + id) removeCookie(reply, name, true)
    if (name === PLAIN_PREFIX + id) removeCookie(reply, name, false)
  }
}

/** A plain cookie has another value: any host of the domain may plant one, but none fits an attempt over TLS. */
const valueFor = (key: KeyObject, prefix: string, id: string) =>
  createHmac('sha256', key)
    .update(prefix === SECURE_PREFIX ? id : prefix + id)
    .digest('base64url')
