import { createHash } from 'node:crypto'
import type { Clip } from './clips.store.ts'

/**
 * Makes the ETag of a clip from the members that its owner can change. State, progress, views and visits are not in it,
 * so that they refuse no change of a text. So it is no validator for caches, and brings no 304.
 */
export function etagOfClip(clip: Clip): string {
  const { title, tags, nsfw, attribution, visibility, slidingSeconds, expiresAt, posterAt } = clip
  // A visit moves the end of a sliding lifetime.
  const lifetime = slidingSeconds ?? expiresAt
  const text = JSON.stringify([title, tags, nsfw, attribution, visibility, lifetime, posterAt])
  return `"${createHash('sha256').update(text).digest('base64url').slice(0, 22)}"`
}

/** Evaluates If-Match by strong comparison (RFC 9110 13.1.1). */
export const isMatch = (header: string, etag: string): boolean =>
  header.trim() === '*' || header.split(',').some((tag) => tag.trim() === etag)
