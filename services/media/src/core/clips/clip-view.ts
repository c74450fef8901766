import type { Attribution } from '../../db/attribution.ts'
import { creditOf } from './credit.ts'

/** What the pages show of a clip: plain values, all addresses absolute, nothing that needs a look-up. */
export interface ClipView {
  id: string
  state: 'processing' | 'ready' | 'failed'
  /** Why a failed clip failed. */
  failure?: { code: string; message: string; reference: string }
  title?: string
  tags: readonly string[]
  nsfw: boolean
  attribution?: Attribution
  /** Pixels of the poster and the videos: fewer than those in the result's `meta` where the source is larger than our files. */
  width: number
  height: number
  durationSeconds: number
  hasAudio: boolean
  createdAt: Date
  /** A thumbhash of the poster, to be seen until that is there. */
  placeholder?: Uint8Array
  urls: {
    page: string
    embed: string
    oembed: string
    gif: string
    jpg: string
    mp4: string
    webm: string
    /** Where they were made. */
    av1?: string
    webp?: string
  }
  /** Where the files' addresses lead, if elsewhere. */
  filesRedirectUrl?: string
  siteName: string
  /** Home of the service; the provider's address in oEmbed. */
  siteUrl: string
  /** `{base}/oembed`, the endpoint that takes `?url=`. */
  oembedEndpoint: string
}

/** Titles are optional, but a page, a card and an iframe need a name. */
export function titleOf({ title, id }: ClipView): string {
  return title || `Clip ${id}`
}

/** One sentence for cards and search results: length, size, sound, author. */
export function describe(clip: ClipView): string {
  const sound = clip.hasAudio ? ', with sound' : ''
  const credit = clip.attribution ? ` From ${creditOf(clip.attribution).label}.` : ''
  return `A ${formatSeconds(clip)} clip, ${clip.width} × ${clip.height}${sound}.${credit}`
}

export function formatSeconds({ durationSeconds }: ClipView): string {
  return `${Math.round(durationSeconds * 10) / 10} s`
}
