// Reading and setting cookies. The one rule: each is of this host alone and out of reach of scripts.
import type { FastifyReply, FastifyRequest } from 'fastify'

export interface Cookie {
  name: string
  value: string
  maxAge: number
  isSecure: boolean
  sameSite: 'Lax' | 'None'
}

export function setCookie(reply: FastifyReply, { name, value, maxAge, isSecure, sameSite }: Cookie): void {
  const attributes = ['Path=/', `Max-Age=${Math.ceil(maxAge)}`, 'HttpOnly', `SameSite=${sameSite}`]
  reply.header('set-cookie', [`${name}=${value}`, ...attributes, ...(isSecure ? ['Secure'] : [])].join('; '))
}

/**
 * Space and tab alone, as browsers take them off (RFC 6265, section 5.2). A name that begins with another blank has no prefix to a
 * browser, which takes it from any host of the domain.
 */
const withoutBlanks = (text: string) => text.replace(/^[ \t]+|[ \t]+$/g, '')

/** Cookies of a request, in the browser's order. */
export const cookiesOf = ({ headers }: FastifyRequest): [name: string, value: string][] =>
  (headers.cookie ?? '').split(';').map((pair) => {
    const [name = '', ...value] = pair.split('=')
    return [withoutBlanks(name), withoutBlanks(value.join('='))]
  })
