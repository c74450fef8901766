import { attempt, backoff, call, pause, RETRIES, successOf, waitBefore } from './call.ts'
import type { Answer, Connection } from './exchange.ts'
import { MediaError, toMediaError } from './media-error.ts'
import type { Added, Result } from './shapes.ts'

/** Bytes of a piece. Many proxies refuse bodies of more than 100 MB. */
const PIECE_BYTES = 8 * 1024 ** 2

export interface Progress {
  /** Bytes that are sent; falls when a connection breaks. */
  loaded: number
  total: number
}

interface Upload {
  fields: Record<string, string>
  headers: Record<string, string>
  signal: AbortSignal | undefined
  onProgress: ((progress: Progress) => void) | undefined
}

export async function uploadForm(connection: Connection, file: Blob, { fields, headers, signal, onProgress }: Upload) {
  const total = file.size
  const answer = await call(connection, {
    method: 'POST',
    path: '/media/upload',
    headers,
    body: () => {
      const form = new FormData()
      for (const [name, value] of Object.entries(fields)) form.append(name, value)
      form.append('file', file, (file as Blob & { name?: string }).name ?? 'clip')
      return form
    },
    signal,
    // The form is a little longer than its file.
    onSent: onProgress && ((bytes) => onProgress({ loaded: Math.min(bytes, total), total })),
    // Without a key a repeated request may add a second clip.
    isRepeatable: headers['idempotency-key'] !== undefined,
  })
  onProgress?.({ loaded: total, total })
  return toAdded(answer, successOf<Result>(answer))
}

const TUS = { 'tus-resumable': '1.0.0' }

/**
 * Uploads by tus: after a broken connection, only bytes that did not arrive are sent again. An abort deletes the
 * upload.
 */
export async function uploadPieces(connection: Connection, file: Blob, upload: Upload): Promise<Added> {
  const { fields, signal } = upload
  const begun = await call(connection, {
    method: 'POST',
    path: '/tus',
    headers: { ...TUS, 'upload-length': String(file.size), 'upload-metadata': toMetadata(fields) },
    signal,
    // A second one only leaves an empty upload, which expires.
    isRepeatable: true,
  })
  // The service may have another address for us than for the public.
  const path = `/tus/${begun.headers.get('location')?.split('/').at(-1)}`
  try {
    return await sendPieces(connection, file, path, upload)
  } catch (error) {
    if (signal?.aborted) void attempt(connection, { method: 'DELETE', path, headers: TUS })
    throw error
  }
}

async function sendPieces(connection: Connection, file: Blob, path: string, upload: Upload): Promise<Added> {
  const { headers, signal, onProgress } = upload
  const total = file.size
  let offset: number | undefined = 0
  let furthest = 0
  for (let failures = 0; ; ) {
    const from: number | undefined = offset
    const answer: Answer | MediaError =
      from === undefined
        ? await attempt(connection, { method: 'HEAD', path, headers: TUS, signal })
        : await attempt(connection, {
            method: 'PATCH',
            path,
            headers: {
              ...headers,
              ...TUS,
              ...{ accept: 'application/json', 'content-type': 'application/offset+octet-stream' },
              'upload-offset': String(from),
            },
            body: () => file.slice(from, from + PIECE_BYTES),
            signal,
            onSent: onProgress && ((bytes) => onProgress({ loaded: from + bytes, total })),
          })
    if (answer instanceof MediaError) {
      const waitMs = waitForUpload(answer, failures++)
      if (waitMs === undefined) throw answer
      // Only the service knows the offset now.
      offset = undefined
      await pause(waitMs, signal)
      continue
    }
    // HEAD reports a complete upload without a body, and at once: an empty piece at its end waits for the files.
    if (answer.text) {
      onProgress?.({ loaded: total, total })
      return toAdded(answer, successOf<Result>(answer))
    }
    offset = Number(answer.headers.get('upload-offset'))
    // Also for a proxy that drops the header: the loop would never end.
    const isWrong = !(offset <= total) || (from !== undefined && !(offset > from))
    if (isWrong) throw toMediaError(answer.status, answer.headers, '')
    onProgress?.({ loaded: offset, total })
    if (offset > furthest) failures = 0
    furthest = Math.max(furthest, offset)
  }
}

/** The offset conflicts, or is locked, while the request of a broken connection is still at work. */
function waitForUpload(failure: MediaError, failures: number): number | undefined {
  if (failure.status !== 409 && failure.status !== 423) return waitBefore(failure, failures)
  return failures < RETRIES ? backoff(failures) : undefined
}

/** Values in base64 of their UTF-8. */
const toMetadata = (fields: Record<string, string>): string =>
  Object.entries(fields)
    .map(([name, value]) => `${name} ${inBase64(value)}`)
    .join(',')

const inBase64 = (text: string) => btoa(String.fromCharCode(...new TextEncoder().encode(text)))

export function toAdded({ headers }: Answer, result: Result): Added {
  const deleteToken = headers.get('x-delete-token')
  const deleteUrl = headers.get('x-delete-url')
  const expiresAt = headers.get('x-expires-at')
  return {
    ...result,
    id: result.page.split('/').at(-1) ?? '',
    state: headers.get('x-media-state') === 'ready' ? 'ready' : 'processing',
    isReplay: headers.get('idempotency-replayed') === 'true',
    ...(deleteToken && { deleteToken }),
    ...(deleteUrl && { deleteUrl }),
    ...(expiresAt && { expiresAt: new Date(expiresAt) }),
  }
}
