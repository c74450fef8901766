// The header Idempotency-Key. Lifetime of a key and its replay: core/idempotency/idempotency.store.ts,
// ingest/accept/begin-request.ts.
import { createHash } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { AccessChanges } from '../core/clips/access.ts'
import type { ClipFields } from '../core/clips/clip-fields.ts'
import type { Edit } from '../core/edits/edit.ts'
import type { KeyedRequest } from '../core/idempotency/idempotency.store.ts'
import { apiError } from '../errors.ts'

/** The header, read for callers with a token only: keys are unique per token. Throws invalid_request. */
export function readKey({ headers, apiToken }: FastifyRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined || !apiToken) return undefined
  if (/^[\x20-\x7e]{1,255}$/.test(String(key))) return String(key)
  throw apiError('invalid_request', {
    message: 'The Idempotency-Key must be 1 to 255 ASCII characters.',
    details: { param: 'Idempotency-Key' },
  })
}

/** `content` is the hash of the file or its URL. Undefined without a key. */
export function keyedRequest(
  request: FastifyRequest,
  route: KeyedRequest['route'],
  {
    content,
    fields,
    access,
    edit,
    album,
  }: {
    content: string
    fields: ClipFields
    access: AccessChanges
    edit: Edit | undefined
    album: string | undefined
  },
): KeyedRequest | undefined {
  const key = readKey(request)
  if (key === undefined || !request.apiToken) return undefined
  const fingerprint = createHash('sha256')
    .update(
      JSON.stringify([
        ...[content, fields, ...(edit ? [edit] : []), ...(hasAny(access) ? [{ access }] : [])],
        ...(album ? [{ album }] : []),
      ]),
    )
    .digest()
  return { tokenId: request.apiToken.id, route, key, fingerprint }
}

const hasAny = (members: object) => Object.keys(members).length > 0
