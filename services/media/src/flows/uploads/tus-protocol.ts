// Adapts @tus/server, which knows the rules of the protocol (tus.io, 1.0.0). Loaded with the first request, which saves
// memory of an idle service. Every failure leaves as an error of our catalogue.
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { ApiError } from '@services/common/errors'
import { DataStore, ERRORS, type Locker, Metadata, Server, Upload } from '@tus/server'
import type { Deps } from '../../deps.ts'
import { apiError } from '../../errors.ts'
import { fileTooLarge } from './receive-form.http.ts'
import {
  declareLength,
  extendUpload,
  findUpload,
  insertUpload,
  type ResumableUpload,
} from './resumable-uploads.store.ts'
import { createPartial, hardDeleteUpload, moreThanAnnounced, partialBytes, partialPath } from './resumable-uploads.ts'
import { TUS_EXTENSIONS } from './tus-headers.http.ts'

export interface TusRequest {
  method: 'POST' | 'HEAD' | 'PATCH' | 'DELETE'
  id: string
  tokenId: string | null
  /** Rate-limit key of the caller. */
  ownerKey: string
  headers: Headers
  /** Ends, and never fails, when the connection breaks: received bytes are kept. */
  body: Readable | undefined
}

type ProtocolDeps = Pick<Deps, 'db' | 'config' | 'now'> & { locks: Locker }

/** Lifetime of an upload without a byte: it holds a slot, and costs an abuser nothing to create. */
const BEGIN_WITHIN_MS = 900_000

/** Time to store bytes in flight after a newer request wants the lock. */
const DRAIN_MS = 500

/** Returns status and headers of the answer. Throws an ApiError, or an error of disk or database. */
export async function speakTus(deps: ProtocolDeps, request: TusRequest): Promise<{ status: number; headers: Headers }> {
  const { method, id, headers, body } = request
  const { baseUrl } = deps.config.site
  let failure: unknown
  // A server per request, which holds its owner and its failure.
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

/** Metadata by name; undefined for a malformed header. */
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
  if (failure.status_code === 410) return apiError('gone', { message: 'This upload was deleted.' })
  if (failure.status_code === 413) {
    return failure.body === ERRORS.ERR_MAX_SIZE_EXCEEDED.body ? fileTooLarge(maxBytes) : moreThanAnnounced()
  }
  return apiError('invalid_request', { message: sentence(failure.body) })
}

const sentence = (text: string) => `${text.trim().replace(/\.$/, '')}.`

/** Keeps bytes as files in the work directory, the rest as rows. The library requires a class. */
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
    const { tokenId, ownerKey } = this.#owner
    await createPartial(this.#deps, upload.id)
    await insertUpload(db, {
      id: upload.id,
      token_id: tokenId,
      owner_key: ownerKey,
      bytes: upload.size ?? null,
      metadata: Metadata.stringify(upload.metadata ?? {}),
      created_at: createdAt,
      expires_at: new Date(createdAt.getTime() + Math.min(BEGIN_WITHIN_MS, config.resumeWithinSeconds * 1000)),
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
      creation_date: found.created_at.toISOString(),
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

  /** Extends the lifetime with the first byte. */
  async #keep(id: string): Promise<void> {
    const { db, config } = this.#deps
    const upload = await findUpload(db, id)
    if (!upload) return
    await extendUpload(db, id, new Date(upload.created_at.getTime() + config.resumeWithinSeconds * 1000))
  }

  override async declareUploadLength(id: string, bytes: number): Promise<void> {
    if (await declareLength(this.#deps.db, id, bytes)) return
    throw apiError('offset_conflict', { message: 'Another Upload-Length was declared at the same time.' })
  }

  override async remove(id: string): Promise<void> {
    if (!(await hardDeleteUpload(this.#deps, id))) throw ERRORS.FILE_NOT_FOUND
  }
}

/**
 * Offset at which the client continues. Reports one byte less than complete until the clip exists. Clients treat a
 * complete offset as done and never retry after a crash or a 503.
 */
async function offsetOf(deps: ProtocolDeps, { id, bytes, clip_id }: ResumableUpload): Promise<number> {
  if (clip_id !== null) return bytes ?? 0
  const here = await partialBytes(deps, id)
  if (here === undefined) throw ERRORS.FILE_NO_LONGER_EXISTS
  return bytes === null ? here : Math.max(0, Math.min(here, bytes - 1))
}
