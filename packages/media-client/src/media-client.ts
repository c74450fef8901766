// A client of the media service, for Node and browsers. It imports nothing but its own files, so that it can be
// published alone. Tests: beside it, and services/media/test/media-client*.test.ts.
import { administrationOf } from './administration.ts'
import { albumsOf } from './albums.ts'
import { call, successOf } from './call.ts'
import { type Answer, type CallOptions, type Connection, open, pathOf } from './exchange.ts'
import { networkError, toMediaError } from './media-error.ts'
import { pagesOf } from './pages.ts'
import type {
  Added,
  BulkAct,
  BulkResult,
  Clip,
  ClipChanges,
  ClipEvent,
  ClipFields,
  ListFilter,
  LiveEvent,
  Result,
  Usage,
} from './shapes.ts'
import { type Progress, toAdded, uploadForm, uploadPieces } from './upload.ts'
import { watchClip, watchClips } from './watch.ts'

export type * from './administration-shapes.ts'
export { MediaError, type MediaErrorCode } from './media-error.ts'
export type {
  Added,
  Album,
  AlbumFields,
  Attribution,
  BulkAct,
  BulkResult,
  Clip,
  ClipChanges,
  ClipEvent,
  ClipFields,
  ListFilter,
  LiveEvent,
  Result,
  StoredFile,
  Usage,
} from './shapes.ts'
export type { Progress } from './upload.ts'

/** Larger files are uploaded in pieces. */
const FORM_BYTES = 20_000_000

export interface MediaClientOptions {
  /** Address of the service, as in `https://media.example.com`. */
  baseUrl: string
  token?: string
  /** Sends every request, instead of the global `fetch`. In browsers it reports no progress. */
  fetch?: typeof globalThis.fetch
}

export interface AddOptions extends CallOptions {
  /** Fields of a newer service are sent as they are. */
  fields?: ClipFields & Record<string, unknown>
  /** Answers when all files are ready (default), when poster and mp4 are, at once, or after so many seconds at most. */
  wait?: 'ready' | 'mp4' | 'none' | number
}

export interface UploadOptions extends AddOptions {
  onProgress?: (progress: Progress) => void
  /** `auto` sends files over 20 MB in pieces that survive a broken connection, and smaller ones as a form. */
  resumable?: 'auto' | boolean
}

export interface ListOptions extends ListFilter, CallOptions {
  /** Clips that one request brings. */
  pageSize?: number
}

export type MediaClient = ReturnType<typeof createMediaClient>

export function createMediaClient({ baseUrl, token, fetch }: MediaClientOptions) {
  const connection: Connection = {
    baseUrl: new URL(baseUrl).href.replace(/\/+$/, ''),
    token,
    fetch: fetch ?? ((...args) => globalThis.fetch(...args)),
    isDefaultFetch: fetch === undefined,
  }

  return {
    /** Calls of administrators, for tokens with the scope `admin`. */
    admin: administrationOf(connection),

    /** Adds a file: a Blob or File, or bytes. `openAsBlob` of node:fs opens a path without reading it into memory. */
    async upload(file: Blob | ArrayBuffer | Uint8Array, options: UploadOptions = {}): Promise<Added> {
      const { fields = {}, resumable = 'auto', signal, onProgress } = options
      const blob = file instanceof Blob ? file : new Blob([file as Uint8Array<ArrayBuffer>])
      const inPieces = resumable === 'auto' ? blob.size > FORM_BYTES : resumable
      const upload = { fields: toTexts(fields), headers: addHeaders(connection, options), signal, onProgress }
      return inPieces ? uploadPieces(connection, blob, upload) : uploadForm(connection, blob, upload)
    },

    /** Adds the clip at an address, or on the page there. */
    async import(source: string, options: AddOptions = {}): Promise<Added> {
      const answer = await call(connection, {
        method: 'POST',
        path: '/media/import',
        headers: { ...addHeaders(connection, options), ...JSON_BODY },
        body: () => JSON.stringify({ ...options.fields, source }),
        signal: options.signal,
        isRepeatable: true,
      })
      return toAdded(answer, successOf<Result>(answer))
    },

    /** The clip, and its `etag` for `update`. */
    async get(id: string, { signal }: CallOptions = {}): Promise<Clip & { etag?: string }> {
      return toTagged(await call(connection, { method: 'GET', path: pathOf(id), signal, isRepeatable: true }))
    },

    /** Changes a clip; with `etag` only if it is as it was read, else throws clip_changed with it in `details`. */
    async update(
      id: string,
      changes: ClipChanges & Record<string, unknown>,
      { signal, etag }: CallOptions & { etag?: string | undefined } = {},
    ): Promise<Clip & { etag?: string }> {
      const body = () => JSON.stringify(changes)
      const headers = { ...JSON_BODY, ...(etag !== undefined && { 'if-match': etag }) }
      const request = { method: 'PATCH', path: pathOf(id), headers, body, signal }
      // A repeat after a lost answer would find the change of its first attempt.
      return toTagged(await call(connection, { ...request, isRepeatable: etag === undefined }))
    },

    /** Deletes a clip permanently; with `deleteToken` one that was added without a token, or with `delete-link`. */
    async delete(id: string, { signal, deleteToken }: CallOptions & { deleteToken?: string } = {}): Promise<void> {
      const headers: Record<string, string> = deleteToken ? { 'x-delete-token': deleteToken } : {}
      const request = { method: 'DELETE', path: pathOf(id), headers, signal }
      // The service would check the token alone.
      const caller = deleteToken ? { ...connection, token: undefined } : connection
      await call(caller, { ...request, isRepeatable: true, doneStatus: 410 })
    },

    /** Acts on up to 500 clips. Each is changed or refused on its own; a repeated attempt does nothing twice. */
    async bulk(ids: readonly string[], act: BulkAct, { signal }: CallOptions = {}): Promise<BulkResult[]> {
      if (ids.length === 0) return []
      const headers = { ...JSON_BODY, 'idempotency-key': randomKey() }
      const body = () => JSON.stringify({ ids, ...act })
      const request = { method: 'POST', path: '/media/bulk', headers, body, signal, isRepeatable: true }
      return successOf<{ results: BulkResult[] }>(await call(connection, request)).results
    },

    /**
     * A file of each of up to 100 clips, the mp4 if no `kind` is named. The body of the answer is a zip. It is not
     * repeated: an archive that ends early fails its reader.
     */
    async archive(
      ids: readonly string[],
      { signal, kind }: CallOptions & { kind?: keyof Result['files'] } = {},
    ): Promise<Response> {
      const query = new URLSearchParams({ ids: ids.join(), ...(kind && { kind }) })
      const request = { method: 'GET', path: `/media/archive?${query}`, signal }
      const answer = await open(connection, request).catch((error) => {
        signal?.throwIfAborted()
        throw networkError(error)
      })
      if (!answer.ok) throw toMediaError(answer.status, answer.headers, await answer.text())
      return answer
    },

    /** Tags of the token's newest clips, most used first. */
    async tags({ signal, limit }: CallOptions & { limit?: number } = {}): Promise<{ tag: string; count: number }[]> {
      const path = limit === undefined ? '/media/tags' : `/media/tags?limit=${limit}`
      return successOf(await call(connection, { method: 'GET', path, signal, isRepeatable: true }))
    },

    /** Storage of the token, additions of today, and its limits. */
    async usage({ signal }: CallOptions = {}): Promise<Usage> {
      return successOf(await call(connection, { method: 'GET', path: '/usage', signal, isRepeatable: true }))
    },

    /** Follows a clip until it is ready, failed or deleted. */
    watch(id: string, { signal }: CallOptions = {}): AsyncGenerator<ClipEvent, void, undefined> {
      return watchClip(connection, id, signal)
    },

    /** Follows all clips of the token, without end; for admins of all tokens, or of `token`. */
    watchAll(
      options: CallOptions & { after?: string; token?: string } = {},
    ): AsyncGenerator<LiveEvent, void, undefined> {
      return watchClips(connection, options)
    },

    /** Clips of the token, newest first; further pages are requested as the loop comes to them. */
    list: ({ signal, pageSize, ...filter }: ListOptions = {}): AsyncGenerator<Clip, void, undefined> =>
      pagesOf(connection, '/media', { ...filter, limit: pageSize }, signal),

    /** Albums of the token. */
    albums: albumsOf(connection, randomKey),
  }
}

function toTagged(answer: Answer): Clip & { etag?: string } {
  const etag = answer.headers.get('etag')
  return { ...successOf<Clip>(answer), ...(etag !== null && { etag }) }
}

const JSON_BODY = { 'content-type': 'application/json' }

const PREFERENCES = { ready: undefined, mp4: 'wait-for=mp4', none: 'respond-async' }

/** One key for all attempts of a call, so that they add one clip. The service knows keys of tokens only. */
function addHeaders({ token }: Connection, { wait = 'ready' }: AddOptions): Record<string, string> {
  const preference = typeof wait === 'number' ? `wait=${wait}` : PREFERENCES[wait]
  return {
    ...(token && { 'idempotency-key': randomKey() }),
    ...(preference && { prefer: preference }),
  }
}

/** `randomUUID` is missing on pages without TLS. */
const randomKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('')

/** Fields of a form: tags as a JSON array, members of the attribution with its name in front. */
function toTexts(fields: Record<string, unknown>): Record<string, string> {
  const texts: Record<string, string> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) continue
    if (name === 'attribution') {
      for (const [member, text] of Object.entries(toTexts(value as Record<string, unknown>))) {
        texts[`attribution_${member}`] = text
      }
    } else if (value instanceof Date) texts[name] = value.toISOString()
    else texts[name] = typeof value === 'object' ? JSON.stringify(value) : String(value)
  }
  return texts
}
