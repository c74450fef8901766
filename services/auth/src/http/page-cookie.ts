// The cookie of a browser that was shown a page with a button, which may be a stranger's address. The one rule: it says what the
// browser has seen and nothing that it has done; the page's form proves by a MAC of it that the page was shown to this browser.
import { createHmac, type KeyObject, timingSafeEqual } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { cookiesOf, setCookie } from './cookies.ts'

export interface ShownPage {
  /** What the button begins. */
  id: string
  /** Whether browsers come by https, from where alone the cookie is then set and sent. */
  isSecure: boolean
}

const nameFor = (isSecure: boolean) => (isSecure ? '__Host-auth-page' : 'auth-page')

const SECRET = /^[\w-]{43}$/

/** Secrets a request brings: another host of the domain can add one where browsers do not come by https. */
const secretsOf = (request: FastifyRequest, isSecure: boolean) =>
  cookiesOf(request)
    .filter(([name, value]) => name === nameFor(isSecure) && SECRET.test(value))
    .map(([, value]) => value)

interface Showing extends ShownPage {
  key: KeyObject
  lifetimeSeconds: number
  random: (bytes: number) => Uint8Array
}

/** Gives the browser its cookie, one for all its pages, and returns the proof for the form of this page. */
export function provePage(request: FastifyRequest, reply: FastifyReply, showing: Showing): string {
  const { key, id, isSecure, lifetimeSeconds, random } = showing
  const secret = secretsOf(request, isSecure)[0] ?? Buffer.from(random(32)).toString('base64url')
  setCookie(reply, { name: nameFor(isSecure), value: secret, maxAge: lifetimeSeconds, isSecure, sameSite: 'Lax' })
  return proofOf(key, { id, isSecure }, secret).toString('base64url')
}

/** Reports whether this browser was shown the page whose form gave the proof. */
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
