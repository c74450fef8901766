import { rm } from 'node:fs/promises'
import { apiError } from '../../errors.ts'
import { demuxerOf } from '../../ffmpeg/hardening.ts'
import type { FetchOptions, Remote, RemoteAnswer } from '../../ingest/remote/fetch-remote.ts'
import { readBody } from '../../ingest/remote/read-body.ts'
import { encodingOf, requireOk, requirePlain } from '../../ingest/remote/require-file.ts'
import {
  contentTypeOf,
  type FetchedFile,
  type NewFile,
  refuseLargeBody,
  withNewFile,
  writeBody,
} from '../../ingest/remote/save-body.ts'
import { decodeText } from '../../ingest/sites/decode-text.ts'
import type { Page } from '../../ingest/sites/page.ts'
import { readDeclaredDuration } from '../../make/probe/declared-duration.ts'
import { findType } from '../../make/probe/sniff.ts'
import {
  type ProbeLimits,
  refuseDeclaredDuration,
  refuseLongDuration,
  unsupportedType,
} from '../../make/probe/source-limits.ts'

/** Content of an address. */
export type Opened =
  | { kind: 'file'; file: FetchedFile }
  | { kind: 'page'; page: Page }
  | { kind: 'manifest'; url: string; format: 'hls' | 'dash' }
  /** A redirect that was not followed. */
  | { kind: 'elsewhere'; url: URL }

export interface OpenSourceOptions extends Pick<FetchOptions, 'mayVisit' | 'ownHeaders' | 'signal' | 'totalMs'> {
  maxBytes: number
  limits: Pick<ProbeLimits, 'types' | 'durationSeconds'>
}

/** Enough for the headers that hold type and duration. */
const HEAD_BYTES = 64 * 1024
/** A file up to this size is fetched whatever duration its header declares: headers can lie, and the probe counts. */
const SMALL_BYTES = 1024 * 1024
const MAX_PAGE_BYTES = 2 * 1024 * 1024

/**
 * Sends one request. A file of an accepted type, recognized by its first bytes, is written to `path`; of a page up to 2
 * MB are read. Throws source_forbidden, source_fetch_failed, file_too_large, duration_exceeded by the header of a
 * larger file, unsupported_media_type for other content, and unsupported_site_content for an empty body.
 */
export async function openSource(
  remote: Pick<Remote, 'fetch'>,
  url: string,
  path: string,
  options: OpenSourceOptions,
): Promise<Opened> {
  // Create the file first: without disk space there is no request.
  const opened = await withNewFile(path, (file) =>
    remote.fetch(url, options, (answer) => readAnswer(answer, file, options)),
  )
  if (opened.kind !== 'file') await rm(path)
  return opened
}

async function readAnswer(
  answer: RemoteAnswer,
  file: NewFile,
  { maxBytes, limits }: OpenSourceOptions,
): Promise<Opened> {
  if (answer.next) return { kind: 'elsewhere', url: answer.next }
  requireOk(answer)
  refuseLargeBody(answer, maxBytes)
  if (encodingOf(answer) !== 'identity') return readPackedPage(answer)

  const head = await readHead(answer.chunks)
  if (head.bytes.length === 0) throw apiError('unsupported_site_content', { cause: 'the body was empty' })
  const body = { headers: answer.headers, chunks: join(head.bytes, answer.chunks) }
  const type = await findType(head.bytes, limits.types)
  if (type) {
    const bytes = head.isWhole ? head.bytes.length : Number(answer.headers['content-length'] ?? maxBytes)
    const seconds = bytes > SMALL_BYTES ? readDeclaredDuration(type, head.bytes) : undefined
    // The mov demuxer's files declare the duration of their picture, Matroska's that of the longest track.
    const refuseDuration = demuxerOf[type] === 'mov' ? refuseLongDuration : refuseDeclaredDuration
    if (seconds !== undefined) refuseDuration(limits, seconds)
    return { kind: 'file', file: await writeBody(file, body, maxBytes) }
  }
  const start = head.bytes.subarray(0, 1024).toString('latin1').trimStart()
  if (start.startsWith('#EXTM3U')) return { kind: 'manifest', url: answer.url.href, format: 'hls' }
  if (/^(<\?xml[^>]*>\s*)?(<!--[^>]*-->\s*)*<MPD\b/.test(start)) {
    return { kind: 'manifest', url: answer.url.href, format: 'dash' }
  }
  if (!isPage(answer, start)) throw unsupportedType(limits.types, 'neither media nor a page')
  return { kind: 'page', page: await parsePage(answer, await readBody(body, MAX_PAGE_BYTES)) }
}

/** Media files are not compressed; a compressed answer, which was not requested, is a page at best. */
async function readPackedPage(answer: RemoteAnswer): Promise<Opened> {
  if (!isPage(answer, '')) requirePlain(answer)
  return { kind: 'page', page: await parsePage(answer, await readBody(answer, MAX_PAGE_BYTES)) }
}

async function parsePage({ url, headers }: RemoteAnswer, bytes: Buffer): Promise<Page> {
  // Loads the parser with the first page.
  const { readPage } = await import('../../ingest/sites/read-page.ts')
  return readPage(decodeText(bytes, headers['content-type']), url)
}

function isPage({ headers }: Pick<RemoteAnswer, 'headers'>, start: string): boolean {
  if (/^(text\/html|application\/xhtml\+xml)$/.test(contentTypeOf(headers) ?? '')) return true
  return /^(\xef\xbb\xbf)?\s*(<!doctype html|<html|<head|<body|<title|<meta)\b/i.test(start)
}

async function readHead(chunks: AsyncGenerator<Buffer>): Promise<{ bytes: Buffer; isWhole: boolean }> {
  const parts: Buffer[] = []
  let length = 0
  while (length < HEAD_BYTES) {
    // No `for await`: it would end the body with the loop.
    const { value, done } = await chunks.next()
    if (done) return { bytes: Buffer.concat(parts), isWhole: true }
    parts.push(value)
    length += value.length
  }
  return { bytes: Buffer.concat(parts), isWhole: false }
}

async function* join(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  yield head
  yield* rest
}
