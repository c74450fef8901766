import type { Multipart } from '@fastify/multipart'
import type { FastifyRequest } from 'fastify'
import { invalidField } from '../../core/clips/clip-fields.ts'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { multipartFailure } from '../../http/error-bodies.ts'
import type { FormField } from '../../http/form-fields.ts'
import type { ReceivedFile } from '../../ingest/accept/accept-clip.ts'
import { writeMeasured } from '../../store/blobs/measure.ts'
import type { TimeLimits } from '../../time-limits.ts'
import { watchSpeed } from './upload-speed.ts'

interface Form {
  fields: FormField[]
  file?: ReceivedFile
}

interface Destination {
  path: string
  maxBytes: number
  signal: AbortSignal
  /** Refuses the file for the fields in front of it. */
  beforeFile: (fields: readonly FormField[]) => Promise<void>
}

/** Most bytes of boundaries, headers and fields. A Content-Length beyond it is refused before reading. */
export const FORM_OVERHEAD_BYTES = 8 * 1024 * 1024

/** Room for thirty tags and all other fields. Files beside `file` are ignored, but their number is bounded. */
const LIMITS = { fields: 60, files: 5, parts: 65, fieldSize: 64 * 1024, fieldNameSize: 100, headerPairs: 50 }

/**
 * Streams a form: the file to `path` (new, mode 0600), hashed on the way, the fields into memory, which does not grow
 * with the file. The byte over the limit ends it, even outside the file, where the parser may search for a boundary
 * forever. The caller removes the file, however this ends. Throws missing_file, file_too_large, malformed_multipart,
 * invalid_request, upload_too_slow, unavailable (full disk, stop), and `clientGone`'s reason.
 */
export async function receiveForm(
  { config, work, forceStop, timeLimits }: Pick<Deps, 'config' | 'work' | 'forceStop' | 'timeLimits'>,
  request: FastifyRequest,
  { path, clientGone, beforeFile }: Pick<Destination, 'path' | 'beforeFile'> & { clientGone: AbortSignal },
): Promise<Required<Form>> {
  const { maxBytes } = config.source
  const mostBytes = Math.min(maxBytes, Number(request.headers['content-length'] ?? maxBytes))
  // The parser does not notice the end of a connection, by the client or by our HTTP parser.
  const signal = AbortSignal.any([forceStop, clientGone])
  const { file, fields } = await work.withSpace(mostBytes, () =>
    readParts(request, { path, maxBytes, signal, beforeFile, timeLimits }),
  )
  if (!file) throw apiError('missing_file', { details: { param: 'file' } })
  if (file.bytes === 0) throw emptyFile()
  return { file, fields }
}

async function readParts(
  request: FastifyRequest,
  { path, maxBytes, signal, beforeFile, timeLimits }: Destination & { timeLimits: TimeLimits },
): Promise<Form> {
  const form: Form = { fields: [] }
  // It may have aborted before this function listens.
  signal.throwIfAborted()
  const { socket } = request.raw
  const speed = watchSpeed(() => socket.bytesRead, timeLimits)
  const size = new AbortController()
  const stop = AbortSignal.any([signal, speed.signal, size.signal])
  const { promise: stopped, reject } = Promise.withResolvers<never>()
  stopped.catch(() => {})
  const onStop = () => reject(stop.reason)
  stop.addEventListener('abort', onStop)
  // One byte over our own limit, which is enforced below: the parser would wait for the rest of the part.
  const parts = request.parts({ limits: { ...LIMITS, fileSize: maxBytes + 1 } })
  let bytes = 0
  const count = (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > maxBytes + FORM_OVERHEAD_BYTES) size.abort(fileTooLarge(maxBytes))
  }
  // Only after the parser: a listener starts the stream.
  request.raw.on('data', count)
  try {
    // No `for await`: it could not be left while it waits for the next part.
    const nextPart = () => Promise.race([parts.next(), stopped])
    for (let next = await nextPart(); !next.done; next = await nextPart()) {
      await receivePart(form, next.value, { path, maxBytes, signal: stop, beforeFile })
    }
    return form
  } catch (error) {
    stop.throwIfAborted()
    throw multipartFailure(error as Parameters<typeof multipartFailure>[0]) ?? error
  } finally {
    speed.stop()
    request.raw.off('data', count)
    // A composed signal with a listener lives as long as its sources, and `forceStop` lives as long as the process.
    stop.removeEventListener('abort', onStop)
  }
}

export const emptyFile = () => apiError('missing_file', { message: 'The file is empty.', details: { param: 'file' } })

/** Also for a form that is too large: whether the file or the rest is at fault shows only at its end. */
export const fileTooLarge = (maxBytes: number) =>
  apiError('file_too_large', { details: { param: 'file', limit: maxBytes } })

async function receivePart(form: Form, part: Multipart, { path, maxBytes, signal, beforeFile }: Destination) {
  if (part.type === 'field') {
    form.fields.push(toField(part))
  } else if (part.fieldname !== 'file') {
    part.file.resume()
  } else if (form.file) {
    throw apiError('invalid_request', { message: 'Only one file at a time.', details: { param: 'file' } })
  } else {
    await beforeFile(form.fields)
    const limit = { maxBytes, refuse: () => fileTooLarge(maxBytes) }
    form.file = await writeMeasured(path, part.file, { limit, signal })
  }
}

function toField(part: { fieldname: string; value: unknown; valueTruncated?: boolean }): FormField {
  const { fieldname: name, value, valueTruncated } = part
  if (valueTruncated) throw invalidField(name, 'is too long')
  if (typeof value === 'string') return { name, value }
  // The plugin parses a JSON part, and its value may be nested too deep to stringify.
  try {
    return { name, value: JSON.stringify(value) }
  } catch {
    throw invalidField(name, 'is nested too deep')
  }
}
