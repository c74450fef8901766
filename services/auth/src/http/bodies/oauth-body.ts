import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { oauthError } from '../../oauth-errors.ts'

/** More than the longest assertion of a client, and all that these endpoints read. */
const MAX_BODY_BYTES = 64 * 1024

export const CONSUMES = ['application/json', 'application/x-www-form-urlencoded']

/** Parameter of an OAuth endpoint. */
export const Parameter = Type.Optional(Type.String())

/** Resources (RFC 8707), the one parameter that may stand several times. */
export const ResourceParameter = Type.Optional(Type.Union([Type.String(), Type.Array(Type.String())]))

export const resourcesIn = (resource: string | string[] | undefined): string[] => [
  ...new Set([resource ?? []].flat().filter((each) => each !== '')),
]

/** Names of a parameter, separated by spaces (RFC 6749, section 3.3). */
export const wordsOf = (text: string | undefined): string[] => [...new Set((text ?? '').split(' ').filter(Boolean))]

/** Reads forms beside JSON in all routes of the scope; each parameter stands once (RFC 6749, section 3.2). */
export function acceptOAuthForms(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    route.bodyLimit ??= MAX_BODY_BYTES
  })
  const parse = async (_request: FastifyRequest, body: string | Buffer) => readForm(String(body))
  app.addContentTypeParser('application/x-www-form-urlencoded', { parseAs: 'string' }, parse)
}

function readForm(text: string): Record<string, string | string[]> {
  const form: Record<string, string | string[]> = Object.create(null)
  for (const [name, value] of new URLSearchParams(text)) {
    if (value.includes('\0')) throw oauthError('invalid_request', { message: 'A parameter must not contain NUL' })
    // It counts as absent (section 3.1).
    if (value === '') continue
    const before = form[name]
    if (before !== undefined && name !== 'resource') {
      throw oauthError('invalid_request', { message: 'A parameter must not stand twice' })
    }
    form[name] = before === undefined ? value : [before, value].flat()
  }
  return form
}
