import { createHash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'

/** Sets the ETag. True when the caller has the same text already, and 304 will do (RFC 9110 13.1.2). */
export function isKnown({ headers }: FastifyRequest, reply: FastifyReply, text: string): boolean {
  const etag = `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
  reply.header('etag', etag)
  const known = headers['if-none-match']?.split(',') ?? []
  return known.some((tag) => tag.trim().replace(/^W\//, '') === etag)
}

/**
 * Cache-Control for page, oEmbed and data of a clip. Titles may change and clips end at any time, so caches revalidate
 * each time. An unfinished clip changes every moment, and a private one is for its viewer alone.
 */
export function cacheOfClip({ isReady, isLinked }: { isReady: boolean; isLinked: boolean }): string {
  if (!isReady) return 'no-store'
  return isLinked ? 'private, no-cache' : 'public, no-cache'
}
