// This folder finds the best file behind the address of a page. A site sends requests through its `visit` alone, so it
// cannot reach a host that is not its own. Tests: sites.test.ts, visit.test.ts, test/sites.test.ts.
import type { Edit } from '../../core/edits/edit.ts'
import type { FetchedFile } from '../remote/save-body.ts'
import type { Visit } from './visit.ts'

/** Headers that the upstream requires, mostly a Referer; never a secret. */
type Headers = Record<string, string>

/** Possible address of the media. The bytes of a file decide its type, whatever the site says. */
export type MediaSource =
  /** `bytes` if the site says so: a file that is too large is not requested. */
  | { kind: 'file'; url: string; bytes?: number | undefined; headers?: Headers | undefined }
  | { kind: 'manifest'; url: string; format: 'hls' | 'dash'; headers?: Headers | undefined }
  | { kind: 'separate'; picture: string; sound: string; headers?: Headers | undefined }
  /** A page that shows it, perhaps on another site. Only one such step is taken. */
  | { kind: 'page'; url: string }
  | { kind: 'ytdlp'; url: string }

/** Unverified metadata of the site. */
export interface About {
  title?: string | undefined
  nsfw?: boolean | undefined
  /** `site`: twitter, reddit, instagram or the address of another site. */
  attribution?: { site: string; user?: string | undefined; url?: string | undefined } | undefined
}

export interface Found extends About {
  /** Best first. */
  sources: MediaSource[]
  /** Set if the site says so: a clip that is too long is refused before it is fetched. */
  durationSeconds?: number | undefined
}

interface Bounds {
  signal: AbortSignal
  /** Deadline on the clock of performance.now(). */
  endsAt: number
  maxBytes: number
  /** Tenant whose slots it takes. */
  key: string
  /** A chosen part permits a longer source, of which a manifest's other segments are not fetched. */
  edit?: Edit | undefined
}

/** Writes the clip to the new `path`. Addresses in a manifest must be on its site or `hosts`, and pass the guard. */
export type AssembleManifest = (
  source: Extract<MediaSource, { kind: 'manifest' | 'separate' }>,
  options: Bounds & { path: string; hosts?: readonly string[] | undefined },
) => Promise<{ file: FetchedFile; missingSeconds?: number }>

/** Throws like a site: site_login_required, unsupported_site_content, source_fetch_failed with `details.site`. */
export type ExtractPage = (url: string, options: Bounds) => Promise<Found>

export interface Site {
  name: string
  /** Its domains, with all subdomains: only these are contacted, for pages and for files. */
  hosts: readonly string[]
  /** True for a site that has shut down; MEDIA_IMPORT_SITES does not list it. */
  isGone?: boolean
  /** Undefined for an address that is no page of a clip; generic discovery reads it. */
  open: (url: URL) => ((visit: Visit) => Promise<Found>) | undefined
}

/** Joins the two halves of a site: `read` parses an address, `find` resolves it. */
export function defineSite<Reference>(site: {
  name: string
  hosts: readonly string[]
  read: (url: URL) => Reference | undefined
  find: (reference: Reference, visit: Visit) => Promise<Found>
}): Site {
  return {
    ...site,
    open: (url) => {
      const reference = site.read(url)
      return reference === undefined ? undefined : (visit) => site.find(reference, visit)
    },
  }
}

export const fileAt = (url: string | undefined, bytes?: number): MediaSource[] =>
  url ? [{ kind: 'file', url, bytes }] : []

export const isHostOf = (domains: readonly string[], { hostname }: URL): boolean =>
  domains.some((domain) => hostname === domain || hostname.endsWith(`.${domain}`))

export const pathOf = ({ pathname }: URL): string[] => pathname.split('/').filter(Boolean)
