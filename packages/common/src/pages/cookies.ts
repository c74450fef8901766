// Reading and setting cookies. Each belongs only to this host and is out of reach of scripts.
import type { FastifyReply, FastifyRequest } from 'fastify'

export interface Cookie {
  name: string
  value: string
  maxAge: number
  isSecure: boolean
  sameSite: 'Lax' | 'None' | 'Strict'
}

export function setCookie(reply: FastifyReply, { name, value, maxAge, isSecure, sameSite }: Cookie): void {
  const attributes = ['Path=/', `Max-Age=${Math.ceil(maxAge)}`, 'HttpOnly', `SameSite=${sameSite}`]
  reply.header('set-cookie', [`${name}=${value}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; '))
}

export const removeCookie = (reply: FastifyReply, name: string, isSecure: boolean): void =>
  setCookie(reply, { name, value: '', maxAge: 0, isSecure, sameSite: 'Lax' })

/** Strips only space and tab, as browsers do (RFC 6265 5.2): with another blank before it, a prefix guards nothing. */
const withoutBlanks = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '')

/** Values that are read of a name without `__Host-`, of which any host of the domain may add some. */
const MAX_PLAIN_VALUES = 4

/** Values of one cookie. A browser holds a `__Host-` name once: of more, which are forged, only the first is read. */
export const valuesOf = (request: FastifyRequest, name: string): string[] =>
  cookiesOf(request)
    .filter(([other]) => other === name)
    .map(([, value]) => value)
    .slice(0, name.startsWith('__Host-') ? 1 : MAX_PLAIN_VALUES)

/** Cookies of a request, in the browser's order. */
export const cookiesOf = ({ headers }: FastifyRequest): [name: string, value: string][] =>
  (headers.cookie ?? '').split(';').map((pair) => {
    const [name = '', ...value] = pair.split('=')
    return [withoutBlanks(name), withoutBlanks(value.join('='))]
  })
