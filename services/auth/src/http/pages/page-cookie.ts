// Cookie of a browser that was shown a page with a button, possibly by a stranger's link. It proves what the browser
// has seen, not what it has done. The page's form carries a MAC of it.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookiesOf, setCookie } from './cookies.ts'

export interface ShownPage {
  /** Id of the action behind the button. */
  id: string
  /** Whether browsers use https; the cookie is then set and sent only over it. */
  isSecure: boolean
}

const nameFor = (isSecure: boolean) => (isSecure ? '__Host-auth-page' : 'auth-page')

const SECRET = /^[\w-]{43}$/

/** Secrets of a request; without https another host of the domain can add one. */
const secretsOf = (request: FastifyRequest, isSecure: boolean) =>
  cookiesOf(request)
    .filter(([name, value]) => name === nameFor(isSecure) && SECRET.test(value))
    .map(([, value]) => value)

interface Showing extends ShownPage {
  key: KeyObject
  lifetimeSeconds: number
  random: (bytes: number) => Uint8Array
}

/** Sets the browser's cookie, one for all pages, and returns the proof for this page's form. */
export function provePage(request: FastifyRequest, reply: FastifyReply, showing: Showing): string {
  const { key, id, isSecure, lifetimeSeconds, random } = showing
  const secret = secretsOf(request, isSecure)[0] ?? Buffer.from(random(32)).toString('base64url')
  setCookie(reply, { name: nameFor(isSecure), value: secret, maxAge: lifetimeSeconds, isSecure, sameSite: 'Lax' })
  return proofOf(key, { id, isSecure }, secret).toString('base64url')
}

/** Reports whether this browser was shown the page whose form carries the proof. */
export function isProven(request: FastifyRequest, key: KeyObject, page: ShownPage, proof: string): boolean {
  const given = Buffer.from(proof, 'base64url')
  return secretsOf(request, page.isSecure).some((secret) => {
    const expected = proofOf(key, page, secret)
    return given.length === expected.length && timingSafeEqual(given, expected)
  })
}

const proofOf = (key: KeyObject, { id, isSecure }: ShownPage, secret: string) =>
  createHmac('sha256', key)
    .update(`${nameFor(isSecure)} ${secret} ${id}`)
    .digest()
