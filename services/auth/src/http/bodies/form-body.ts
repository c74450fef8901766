import { parse } from 'node:querystring'
import type { FastifyInstance } from 'fastify'

/** Many times the parameters of any request; bodies of other kinds are parsed as everywhere. */
const MAX_FORM_BYTES = 64 * 1024

/** Parses forms in this scope, with repeated parameters as lists. */
export function acceptForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_FORM_BYTES },
    (_request, body, done) => done(null, { ...parse(body as string) }),
  )
}

/** Texts among the members of a query or a form. */
export const textsOf = (values: unknown): Readonly<Record<string, string>> =>
  Object.fromEntries(
    Object.entries((values ?? {}) as Record<string, unknown>).filter(
      (pair): pair is [string, string] => typeof pair[1] === 'string',
    ),
  )
