import { escapeHtml } from '@services/common/html'
import type { ClipView } from '../../core/clips/clip-view.ts'
import { creditOf } from '../../core/clips/credit.ts'
import { embedSize, embedSnippet } from '../../core/clips/embed-snippet.ts'
import { apiError } from '../../errors.ts'

/** oembed.com 2.3.4: https://oembed.com. Members that are undefined are left out. */
export interface Oembed {
  version: '1.0'
  /** Always video: the gif is embedded as one. */
  type: 'video'
  title?: string
  author_name?: string
  author_url?: string
  provider_name: string
  provider_url: string
  cache_age: number
  html: string
  width: number
  height: number
  /** All three or none. */
  thumbnail_url?: string
  thumbnail_width?: number
  thumbnail_height?: number
  /** Not in the standard, which allows more members. */
  nsfw?: true
}

export interface OembedRequest {
  format: 'json' | 'xml'
  maxwidth?: number
  maxheight?: number
}

type MostSize = Pick<OembedRequest, 'maxwidth' | 'maxheight'>

export const OEMBED_CONTENT_TYPE = { json: 'application/json; charset=utf-8', xml: 'text/xml; charset=utf-8' } as const

const CACHE_SECONDS = 3600

/**
 * Reads the query of an oEmbed request; members it does not know are ignored, and so is a limit that is no positive
 * number (consumers send empty ones). Throws ApiError format_not_supported (501, as the standard asks).
 */
export function parseOembedQuery(query: Record<string, unknown>): OembedRequest {
  const format = query.format || 'json'
  if (format !== 'json' && format !== 'xml') throw apiError('format_not_supported')
  return { format, maxwidth: toLimit(query.maxwidth), maxheight: toLimit(query.maxheight) }
}

/** The answer as an object: the JSON form is its `JSON.stringify`, the XML form `oembedXml`. */
export function oembed(clip: ClipView, limits: MostSize = {}): Oembed {
  const size = embedSize(clip, { width: limits.maxwidth, height: limits.maxheight })
  const credit = clip.attribution && creditOf(clip.attribution)
  return {
    version: '1.0',
    type: 'video',
    title: clip.title,
    author_name: credit?.label,
    author_url: credit?.url,
    provider_name: clip.siteName,
    provider_url: clip.siteUrl,
    cache_age: CACHE_SECONDS,
    html: embedSnippet(clip, size),
    ...size,
    ...thumbnail(clip, limits),
    nsfw: clip.nsfw || undefined,
  }
}

export function oembedXml(answer: Oembed): string {
  const members = Object.entries(answer)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `<${name}>${escapeHtml(withoutForbidden(String(value)))}</${name}>`)
  return `<?xml version="1.0" encoding="utf-8" standalone="yes"?>\n<oembed>${members.join('')}</oembed>\n`
}

/**
 * There is one poster, in the size of the videos: it keeps the limits, or is left out (oembed.com 2.3.4). That of a
 * sensitive clip is left out too: consumers show it before anybody agreed to see it.
 */
function thumbnail(
  { state, nsfw, width, height, urls }: ClipView,
  { maxwidth = Infinity, maxheight = Infinity }: MostSize,
) {
  if (state !== 'ready' || nsfw || width > maxwidth || height > maxheight) return {}
  return { thumbnail_url: urls.jpg, thumbnail_width: width, thumbnail_height: height }
}

function toLimit(value: unknown): number | undefined {
  const limit = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Math.floor(Number(value)) : 0
  return limit > 0 ? limit : undefined
}

/** Characters that no XML 1.0 document may hold, escaped or not; one of them makes the whole answer unreadable. */
function withoutForbidden(text: string): string {
  return text.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, '')
}
