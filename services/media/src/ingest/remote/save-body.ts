import { open, rm } from 'node:fs/promises'
import type { IncomingHttpHeaders } from 'node:http'
import { apiError } from '../../errors.ts'
import { createMeasure, type Measured } from '../../store/blobs/measure.ts'
import type { RemoteAnswer } from './fetch-remote.ts'

export interface FetchedFile extends Measured {
  /** The server's claim without parameters, in lower case. Untrusted: sniff instead. */
  contentType: string | undefined
}

type Body = Pick<RemoteAnswer, 'headers' | 'chunks'>

export type NewFile = Awaited<ReturnType<typeof open>>

const tooLarge = (maxBytes: number) => apiError('file_too_large', { details: { limit: maxBytes } })

export function refuseLargeBody({ headers }: Pick<Body, 'headers'>, maxBytes: number): void {
  if (Number(headers['content-length'] ?? 0) > maxBytes) throw tooLarge(maxBytes)
}

export async function writeBody(file: NewFile, { headers, chunks }: Body, maxBytes: number): Promise<FetchedFile> {
  refuseLargeBody({ headers }, maxBytes)
  const measure = createMeasure({ maxBytes, refuse: () => tooLarge(maxBytes) })
  await file.writeFile(measure.pass(chunks))
  return { ...measure.end(), contentType: contentTypeOf(headers) }
}

/** Opens a new file (mode 0600; `wx`: never an existing one) and removes it when `fill` fails. */
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

export const contentTypeOf = (headers: IncomingHttpHeaders): string | undefined =>
  headers['content-type']?.split(';')[0]?.trim().toLowerCase() || undefined
