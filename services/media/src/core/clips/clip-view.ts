import type { Attribution } from '../../db/attribution.ts'
import { creditOf } from './credit.ts'

/** A clip as pages show it: plain values, all URLs absolute, nothing that needs a look-up. */
export interface ClipView {
  id: string
  state: 'processing' | 'ready' | 'failed'
  failure?: { code: string; message: string; reference: string }
  title?: string
  tags: readonly string[]
  nsfw: boolean
  attribution?: Attribution
  /** Pixels of the poster and the videos; the result's `meta` has those of the source, which may be larger. */
  width: number
  height: number
  durationSeconds: number
  hasAudio: boolean
  createdAt: Date
  /** Thumbhash of the poster, shown until the poster has loaded. */
  placeholder?: Uint8Array
  urls: {
    page: string
    embed: string
    oembed: string
    gif: string
    jpg: string
    mp4: string
    webm: string
    av1?: string
    webp?: string
  }
  /** Target to which requests for files are redirected. */
  filesRedirectUrl?: string
  siteName: string
  /** Home page, with a slash at its end; `provider_url` in oEmbed. */
  siteUrl: string
  /** Endpoint that takes `?url=`. */
  oembedEndpoint: string
}

/** Returns the title, or a name made of the id: a page, a card and an iframe need one. */
export function titleOf({ title, id }: ClipView): string {
  return title || `Clip ${id}`
}

/** Description for cards and search results: length, size, sound, author. */
export function describe(clip: ClipView): string {
  const sound = clip.hasAudio ? ', with sound' : ''
  const credit = clip.attribution ? ` From ${creditOf(clip.attribution).label}.` : ''
  return `A ${formatSeconds(clip)} clip, ${clip.width} × ${clip.height}${sound}.${credit}`
}

export function formatSeconds({ durationSeconds }: ClipView): string {
  return `${Math.round(durationSeconds * 10) / 10} s`
}
