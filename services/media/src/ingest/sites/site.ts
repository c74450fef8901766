// This folder knows sites: from the address of a page to the best file behind it. The one rule: a site is asked through its
// `visit` and nothing else, so it cannot reach a host that is not its own. Next: sites.ts lists them, read-page.ts and
// discover.ts are for pages of everybody else, flows/imports/receive-source.ts fetches what was found.
import type { Visit } from './visit.ts'

/** What the far side wants to see beside the address, a Referer mostly; never a secret. */
type Headers = Record<string, string>

/** Where the media may be. Files are what their bytes are, whatever the site says about them. */
export type Source =
  /** `bytes` where the site tells: a file that is too large is not asked for. */
  | { kind: 'file'; url: string; bytes?: number | undefined; headers?: Headers | undefined }
  | { kind: 'manifest'; url: string; format: 'hls' | 'dash'; headers?: Headers | undefined }
  /** Two files of one clip. */
  | { kind: 'separate'; picture: string; sound: string; headers?: Headers | undefined }
  /** A page that shows it, on another site perhaps. Only one such step is taken. */
  | { kind: 'page'; url: string }
  /** Only the operator's yt-dlp can tell. */
  | { kind: 'ytdlp'; url: string }

/** What the site says about it, as it is written there. */
export interface About {
  title?: string | undefined
  nsfw?: boolean | undefined
  /** `site`: twitter, reddit, instagram or the address of another site. */
  attribution?: { site: string; user?: string | undefined; url?: string | undefined } | undefined
}

export interface Found extends About {
  /** Best first. */
  sources: Source[]
  /** Where the site tells: what is too long is refused before it is fetched. */
  durationSeconds?: number | undefined
}

export interface Site {
  name: string
  /** Domains that belong to it, with all their subdomains: nothing else is contacted, for pages and for files. */
  hosts: readonly string[]
  /** Nobody switches on what is not there. */
  isGone?: boolean
  /** Undefined for an address that is not one of its pages, which is looked at like that of any other site. */
  open: (url: URL) => ((visit: Visit) => Promise<Found>) | undefined
}

/** Ties the two halves of a site: what an address names, and how to find that. */
export function defineSite<Reference>(site: {
  name: string
  hosts: readonly string[]
  read: (url: URL) => Reference | undefined
  find: (reference: Reference, visit: Visit) => Promise<Found>
}): Site {
  const { name, hosts, read, find } = site
  return {
    name,
    hosts,
    open: (url) => {
      const reference = read(url)
      return reference === undefined ? undefined : (visit) => find(reference, visit)
    },
  }
}

export const isHostOf = (domains: readonly string[], { hostname }: URL): boolean =>
  domains.some((domain) => hostname === domain || hostname.endsWith(`.${domain}`))

/** The parts of a path, without empty ones; undecoded. */
export const pathOf = ({ pathname }: URL): string[] => pathname.split('/').filter(Boolean)
