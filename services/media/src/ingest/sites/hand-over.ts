import type { FetchedFile } from '../remote/save-body.ts'
import type { Found, MediaSource } from './site.ts'

/** What an import leaves to others: the bounds it gives them, and what it wants back. */
interface Bounds {
  signal: AbortSignal
  /** As performance.now() counts. */
  endsAt: number
  maxBytes: number
  /** Whose share of what is scarce it takes. */
  key: string
}

/**
 * Writes the clip to `path`, which does not exist yet. What a manifest names must be of its own site, or of `hosts` where a
 * resolver knows them, and pass the guard of course.
 */
export type AssembleManifest = (
  source: Extract<MediaSource, { kind: 'manifest' | 'separate' }>,
  options: Bounds & { path: string; hosts?: readonly string[] | undefined },
) => Promise<FetchedFile>

/** Throws what a site throws: site_login_required, unsupported_site_content, source_fetch_failed with `details.site`. */
export type ExtractPage = (url: string, options: Bounds) => Promise<Found>
