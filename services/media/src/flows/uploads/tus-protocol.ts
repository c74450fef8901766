// One request of the tus protocol (tus.io, 1.0.0) in terms of ours; @tus/server knows the rules. Loaded with the first such
// request: an idle service has better uses for its memory. The one rule: every failure leaves as one of our own errors.
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '@services/common/errors'
import { DataStore, ERRORS, Metadata, Server, Upload } from '@tus/server'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import {
  findUpload,
  insertUpload,
  type ResumableUpload,
  setUploadBytes,
  setUploadExpiry,
} from './resumable-uploads.store.ts'
import { createPartial, hardDeleteUpload, moreThanAnnounced, partialBytes, partialPath } from './resumable-uploads.ts'
import { TUS_EXTENSIONS } from './tus-headers.http.ts'
import type { createUploadLocks } from './upload-locks.ts'

export interface TusRequest {
  method: 'POST' | 'HEAD' | 'PATCH' | 'DELETE'
  id: string
  tokenId: string | null
  /** By whom it is counted. */
  ownerKey: string
  headers: Headers
  /** Ends when no more comes, for whatever reason: what has come is kept. */
  body: Readable | undefined
}

type ProtocolDeps = Pick<Deps, 'db' | 'config' | 'now'> & { locks: ReturnType<typeof createUploadLocks> }

/** Nobody begins an upload to send nothing: one without a byte takes a place, and costs whoever begins many nothing. */
const BEGIN_WITHIN_MS = 900_000

/** A connection that is wanted elsewhere gets this long for what is on its way. */
const DRAIN_MS = 500

/** Status and headers of the answer. Throws an ApiError, or what the disk or the database throws. */
export async function speakTus(deps: ProtocolDeps, request: TusRequest): Promise<{ status: number; headers: Headers }> {
  const { method, id, headers, body } = request
  const { baseUrl } = deps.config.site
  let failure: unknown
  // As many as there are requests: each one knows whose upload it is about, and how it failed.
  const server = new Server({
    path: '/tus',
    datastore: new PartialFiles(deps, request),
    locker: deps.locks,
    lockDrainTimeout: DRAIN_MS,
    maxSize: deps.config.source.maxBytes,
    namingFunction: () => id,
    getFileIdFromRequest: () => id,
    generateUrl: () => `${baseUrl}/tus/${id}`,
    onResponseError: (_request, error) => {
      failure = error
      return undefined
    },
  })
  const response = await server.handleWeb(
    new Request(`${baseUrl}/tus/${id}`, {
      method,
      headers,
      ...(body && { body: Readable.toWeb(body) as ReadableStream, duplex: 'half' }),
    }),
  )
  if (failure !== undefined) throw translate(failure, deps.config.source.maxBytes)
  if (response.status >= 400) throw apiError('invalid_request', { message: sentence(await response.text()) })
  return { status: response.status, headers: response.headers }
}

/** What the client says about the file, by name; undefined when it is not spelled as the protocol has it. */
export function parseMetadata(header: string): Record<string, string | null> | undefined {
  try {
    return header === '' ? {} : Metadata.parse(header)
  } catch {
    return undefined
  }
}

type Refusal = { status_code: number; body: string }

const isRefusal = (error: unknown): error is Refusal =>
  typeof error === 'object' && error !== null && 'status_code' in error && 'body' in error

function translate(failure: unknown, maxBytes: number): unknown {
  if (failure instanceof ApiError || !isRefusal(failure)) return failure
  if (failure.status_code === 404) return apiError('not_found')
  if (failure.status_code === 409) return apiError('offset_conflict')
  if (failure.status_code === 410) return apiError('gone', { message: 'This upload was removed.' })
  if (failure.status_code === 413) {
    const isOurLimit = failure.body === ERRORS.ERR_MAX_SIZE_EXCEEDED.body
    return isOurLimit
      ? apiError('file_too_large', { details: { param: 'file', limit: maxBytes } })
      : moreThanAnnounced()
  }
  return apiError('invalid_request', { message: sentence(failure.body) })
}

const sentence = (text: string) => `${text.trim().replace(/\.$/, '')}.`

/** Bytes as files in the work directory, all else as rows. The library asks for a class. */
class PartialFiles extends DataStore {
  readonly #deps: ProtocolDeps
  readonly #owner: Pick<TusRequest, 'tokenId' | 'ownerKey'>

  constructor(deps: ProtocolDeps, { tokenId, ownerKey }: TusRequest) {
    super()
    this.#deps = deps
    this.#owner = { tokenId, ownerKey }
    this.extensions = [...TUS_EXTENSIONS]
  }

  override async create(upload: Upload): Promise<Upload> {
    const { db, now, config } = this.#deps
    const createdAt = now()
    await createPartial(this.#deps, upload.id)
    await insertUpload(db, {
      id: upload.id,
      ...this.#owner,
      bytes: upload.size ?? null,
      metadata: Metadata.stringify(upload.metadata ?? {}),
      createdAt,
      expiresAt: new Date(createdAt.getTime() + Math.min(BEGIN_WITHIN_MS, config.resumeWithinSeconds * 1000)),
    })
    return upload
  }

  override async getUpload(id: string): Promise<Upload> {
    const found = await findUpload(this.#deps.db, id)
    if (!found) throw ERRORS.FILE_NOT_FOUND
    const size = found.bytes ?? undefined
    return new Upload({
      id,
      offset: await offsetOf(this.#deps, found),
      ...(found.metadata !== '' && { metadata: Metadata.parse(found.metadata) }),
      creation_date: found.createdAt.toISOString(),
      ...(size !== undefined && { size }),
    })
  }

  override async write(stream: Readable, id: string, offset: number): Promise<number> {
    const file = createWriteStream(partialPath(this.#deps, id), { flags: 'r+', start: offset })
    const keep = () => this.#keep(id)
    await pipeline(
      stream,
      async function* (chunks: AsyncIterable<Buffer>) {
        let isFirst = offset === 0
        for await (const chunk of chunks) {
          if (isFirst) await keep()
          isFirst = false
          yield chunk
        }
      },
      file,
    )
    return offset + file.bytesWritten
  }

  /** From its first byte on it is kept as long as uploads are. */
  async #keep(id: string): Promise<void> {
    const { db, config } = this.#deps
    const upload = await findUpload(db, id)
    if (!upload) return
    await setUploadExpiry(db, id, new Date(upload.createdAt.getTime() + config.resumeWithinSeconds * 1000))
  }

  override async declareUploadLength(id: string, bytes: number): Promise<void> {
    await setUploadBytes(this.#deps.db, id, bytes)
  }

  override async remove(id: string): Promise<void> {
    if (!(await hardDeleteUpload(this.#deps, id))) throw ERRORS.FILE_NOT_FOUND
  }
}

/**
 * Where the client shall go on. One byte before the end until the upload has become a clip: clients take an upload that
 * stands at its end for done, and would never ask again after a crash or a 503.
 */
async function offsetOf(deps: ProtocolDeps, { id, bytes, clipId }: ResumableUpload): Promise<number> {
  if (clipId !== null) return bytes ?? 0
  const here = await partialBytes(deps, id)
  if (here === undefined) throw ERRORS.FILE_NO_LONGER_EXISTS
  return bytes === null ? here : Math.max(0, Math.min(here, bytes - 1))
}
