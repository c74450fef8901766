import { open, rm } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { apiError } from '../../errors.ts'
import { createMeasure, type Measured } from '../../store/blobs/measure.ts'

export interface FetchedFile extends Measured {
  /** What the server claims, without parameters, in lower case. Never to be trusted: sniff. */
  contentType: string | undefined
}

interface Body {
  headers: IncomingHttpHeaders
  chunks: AsyncIterable<Buffer>
}

export type NewFile = Awaited<ReturnType<typeof open>>

const tooLarge = (maxBytes: number) => apiError('file_too_large', { details: { limit: maxBytes } })

/** By its declared length, before anything is read. */
export function refuseLargeBody({ headers }: Pick<Body, 'headers'>, maxBytes: number): void {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
}

/** Hashes the body on its way to the disk. Throws file_too_large. */
export async function writeBody(file: NewFile, { headers, chunks }: Body, maxBytes: number): Promise<FetchedFile> {
  refuseLargeBody({ headers }, maxBytes)
  const measure = createMeasure({ maxBytes, refuse: () => tooLarge(maxBytes) })
  await file.writeFile(measure.pass(chunks))
  return { ...measure.end(), contentType: contentTypeOf(headers) }
}

/**
 * Opens a new file (mode 0600) and removes it again when `fill` fails. `wx`: a path that exists is somebody else's file,
 * and is neither written nor removed.
 */
export async function withNewFile<T>(path: string, fill: (file: NewFile) => Promise<T>): Promise<T> {
  const file = await open(path, 'wx', 0o600)
  try {
    const result = await fill(file)
    await file.close()
    return result
  } catch (error) {
    await file.close().catch(() => {})
    await rm(path, { force: true })
    throw error
  }
}

export function contentTypeOf(headers: IncomingHttpHeaders): string | undefined {
  return headers['content-type']?.split(';')[0]?.trim().toLowerCase() || undefined
}
