// Imports without JSON, as the service's original accepted them: a form in either encoding of HTML, or the query of a
// GET. The same fields mean the same as in an upload (http/form-fields.ts). Tests: test/import-forms.test.ts.
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { apiError } from '../../errors.ts'
import type { FormField } from '../../http/form-fields.ts'

/** A parsed form. `source` is a member, so that the schema of the body finds it. */
export class ImportForm {
  readonly source?: string
  readonly fields: readonly FormField[]
  constructor(fields: readonly FormField[]) {
    this.fields = fields
    const last = fields.findLast(({ name }) => name === 'source')
    if (last) this.source = last.value
  }
}

/** Number of fields that a form of an upload may have, too (receive-form.http.ts). */
const MAX_FIELDS = 60

export const isMultipart = (type: string | undefined): boolean => /^multipart\/form-data\b/i.test(type ?? '')

/** Longest form; a multipart one of a megabyte of empty parts takes 0.4 s to parse. */
const MAX_BYTES = 128 * 1024

/** Parses forms of the routes of `app`. */
export function acceptForms(app: FastifyInstance): void {
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: MAX_BYTES },
    async (_request: FastifyRequest, body: string) => parseQuery(body),
  )
  app.addContentTypeParser(
    'multipart/form-data',
    { parseAs: 'buffer', bodyLimit: MAX_BYTES },
    async ({ headers }: FastifyRequest, body: Buffer) => parseMultipart(body, headers['content-type'] ?? ''),
  )
}

/** Throws invalid_request for too many fields. */
export const parseQuery = (text: string): ImportForm =>
  formOf([...new URLSearchParams(text)].map(([name, value]) => ({ name, value })))

async function parseMultipart(body: Buffer, type: string): Promise<ImportForm> {
  const form = await new Response(new Uint8Array(body), { headers: { 'content-type': type } })
    .formData()
    .catch((cause) => {
      throw apiError('malformed_multipart', { cause })
    })
  const fields = [...form].map(([name, value]) => {
    if (typeof value === 'string') return { name, value }
    const message = 'A file is sent to /media/upload.'
    throw apiError('invalid_request', { message, details: { param: name.slice(0, 100) } })
  })
  return formOf(fields)
}

function formOf(fields: FormField[]): ImportForm {
  if (fields.length <= MAX_FIELDS) return new ImportForm(fields)
  throw apiError('invalid_request', { message: `The form has more than ${MAX_FIELDS} fields.` })
}
