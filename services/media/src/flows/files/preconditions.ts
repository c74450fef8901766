import type { IncomingHttpHeaders } from 'node:http'

export interface Validators {
  /** Strong ETag with its quotes: the hash of the content. */
  etag: string
  lastModified: Date
}

/** Evaluates If-Match, or without it If-Unmodified-Since (RFC 9110 13.1.1 and 13.1.4). */
export function mayProceed(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const meant = headers['if-match']
  if (meant !== undefined) return meant.trim() === '*' || meant.split(',').some((tag) => tag.trim() === etag)
  const since = Date.parse(headers['if-unmodified-since'] ?? '')
  return Number.isNaN(since) || wholeSeconds(lastModified) <= since
}

/** Evaluates If-None-Match, or without it If-Modified-Since (RFC 9110 13.1.2 and 13.1.3). */
export function isNotModified(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const known = headers['if-none-match']
  if (known !== undefined) {
    return known.trim() === '*' || known.split(',').some((tag) => tag.trim().replace(/^W\//, '') === etag)
  }
  const since = Date.parse(headers['if-modified-since'] ?? '')
  return wholeSeconds(lastModified) <= since
}

/** Evaluates If-Range: true if a range may continue the client's part (RFC 9110 13.1.5). */
export function mayContinue(headers: IncomingHttpHeaders, { etag, lastModified }: Validators): boolean {
  const condition = headers['if-range']
  if (condition === undefined) return true
  const tag = String(condition).trim()
  return tag === etag || Date.parse(tag) === wholeSeconds(lastModified)
}

/** HTTP dates have no fractions. */
const wholeSeconds = (date: Date) => Math.floor(date.getTime() / 1000) * 1000
