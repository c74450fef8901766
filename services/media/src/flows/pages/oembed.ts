import { escapeHtml } from '@services/common/html'
import type { ClipView } from '../../core/clip-views/clip-view.ts'
import { embedSize, embedSnippet } from '../../core/clip-views/embed-snippet.ts'
import { creditOf } from '../../core/clips/credit.ts'
import { apiError } from '../../errors.ts'
import { secondsUntil } from '../../http/lifetime.ts'

export const OEMBED_CONTENT_TYPE = { json: 'application/json; charset=utf-8', xml: 'text/xml; charset=utf-8' } as const

/** Longest that a consumer keeps the answer; never longer than clip and link. */
export const CACHE_SECONDS = 3600

export interface MostSize {
  maxwidth?: number | undefined
  maxheight?: number | undefined
}

/** Reads the query; ignores unknown members and bad limits (consumers send empty ones). Throws format_not_supported. */
export function parseOembedQuery(
  query: Record<string, unknown>,
): MostSize & { format: keyof typeof OEMBED_CONTENT_TYPE } {
  const format = query.format || 'json'
  if (format !== 'json' && format !== 'xml')
    throw apiError('format_not_supported', { message: 'format must be json or xml.' })
  return { format, maxwidth: toLimit(query.maxwidth), maxheight: toLimit(query.maxheight) }
}

/** An answer as in oembed.com 2.3.4. Undefined members are left out. */
export function oembed(clip: ClipView, limits: MostSize, now: Date) {
  const size = embedSize(clip, { width: limits.maxwidth, height: limits.maxheight })
  const credit = clip.attribution && creditOf(clip.attribution)
  return {
    version: '1.0',
    /** The gif is embedded as a video, too. */
    type: 'video',
    title: clip.title,
    author_name: credit?.label,
    author_url: credit?.url,
    provider_name: clip.siteName,
    provider_url: clip.siteUrl,
    cache_age: Math.min(CACHE_SECONDS, secondsUntil(clip.endsAt, now)),
    html: embedSnippet(clip, size),
    ...size,
    ...thumbnail(clip, limits),
    /** An extension, which the standard allows. */
    nsfw: clip.nsfw || undefined,
  }
}

export function oembedXml(answer: object): string {
  const members = Object.entries(answer)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `<${name}>${escapeXml(String(value))}</${name}>`)
  return `<?xml version="1.0" encoding="utf-8" standalone="yes"?>\n<oembed>${members.join('')}</oembed>\n`
}

/**
 * The poster if it fits the limits (oembed.com 2.3.4); none for a sensitive clip, which consumers would show unasked.
 */
export function thumbnail({ isShowable, nsfw, width, height, urls }: ClipView, limits: MostSize) {
  const { maxwidth = Infinity, maxheight = Infinity } = limits
  if (!isShowable || nsfw || width > maxwidth || height > maxheight) return {}
  return { thumbnail_url: urls.jpg, thumbnail_width: width, thumbnail_height: height }
}

function toLimit(value: unknown): number | undefined {
  const limit = typeof value === 'string' && /^\d+(\.\d+)?$/.test(value) ? Math.floor(Number(value)) : 0
  return limit > 0 ? limit : undefined
}

/** Escapes a text, and removes characters that XML 1.0 forbids even escaped: one makes the whole answer unreadable. */
export const escapeXml = (text: string): string =>
  escapeHtml(text.replace(/[^\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]/gu, ''))
