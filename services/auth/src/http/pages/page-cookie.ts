// Cookie of a browser that was shown a page, possibly by a stranger's link. It proves what the browser has seen, not
// what it has done. The page's form carries a MAC of it.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import { setCookie, valuesOf } from '@services/common/pages/cookies'
import type { FastifyReply, FastifyRequest } from 'fastify'

export interface ShownPage {
  /** Id of the action behind the button. */
  id: string
  /** Whether browsers use https; the cookie is then set and sent only over it. */
  isSecure: boolean
}

const nameFor = (isSecure: boolean) => (isSecure ? '__Host-auth-page' : 'auth-page')

const SECRET = /^[\w-]{43}$/

/** Secrets of a request; without https another host of the domain can add one. */
export const pageSecretsOf = (request: FastifyRequest, isSecure: boolean): string[] =>
  valuesOf(request, nameFor(isSecure)).filter((value) => SECRET.test(value))

interface Issue {
  isSecure: boolean
  lifetimeSeconds: number
  random: (bytes: number) => Uint8Array
}

/** Sets the browser's cookie, one for all pages, and returns its secret. */
export function givePageSecret(
  request: FastifyRequest,
  reply: FastifyReply,
  { isSecure, lifetimeSeconds, random }: Issue,
): string {
  const secret = pageSecretsOf(request, isSecure)[0] ?? Buffer.from(random(32)).toString('base64url')
  setCookie(reply, { name: nameFor(isSecure), value: secret, maxAge: lifetimeSeconds, isSecure, sameSite: 'Lax' })
  return secret
}

/** Sets the browser's cookie and returns the proof for this page's form. */
export const provePage = (
  request: FastifyRequest,
  reply: FastifyReply,
  { key, ...showing }: ShownPage & Issue & { key: KeyObject },
): string => proofOf(key, showing, givePageSecret(request, reply, showing)).toString('base64url')

/** Reports whether this browser was shown the page whose form carries the proof. */
export function isProven(request: FastifyRequest, key: KeyObject, page: ShownPage, proof: string): boolean {
  const given = Buffer.from(proof, 'base64url')
  return pageSecretsOf(request, page.isSecure).some((secret) => {
    const expected = proofOf(key, page, secret)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

/** Makes the proof that this browser was shown a page. */
export const proofOf = (key: KeyObject, { id, isSecure }: ShownPage, secret: string): Buffer =>
  createHmac('sha256', key)
    .update(`${nameFor(isSecure)} ${secret} ${id}`)
    .digest()
