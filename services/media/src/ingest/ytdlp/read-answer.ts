import { at, listAt, numberAt, textAt } from '../sites/json.ts'
import type { Found, MediaSource } from '../sites/site.ts'

/** Converts the untrusted output of yt-dlp into the result of a resolver; undefined if it has no usable media. */
export function readAnswer(answer: unknown, page: URL): Found | undefined {
  // A post of several videos is a list; yt-dlp was asked for the first.
  const info = textAt(answer, '_type') === 'playlist' ? listAt(answer, 'entries')[0] : answer
  const source = at(info, 'is_live') === true ? undefined : sourceOf(info)
  if (!source) return undefined
  return {
    sources: [source],
    durationSeconds: numberAt(info, 'duration'),
    title: textAt(info, 'title'),
    nsfw: (numberAt(info, 'age_limit') ?? 0) >= ADULT || undefined,
    attribution: {
      site:
        textAt(info, 'extractor_key')
          ?.match(/^(twitter|reddit|instagram)/i)?.[0]
          .toLowerCase() ?? `${page.origin}/`,
      user: textAt(info, 'uploader_id') ?? textAt(info, 'uploader'),
      url: page.href,
    },
  }
}

const ADULT = 18

/** Address of the chosen format, for our own fetcher. Within a manifest we choose again. */
function sourceOf(info: unknown): MediaSource | undefined {
  const requested = listAt(info, 'requested_formats')
  const formats = requested.length > 0 ? requested : [info]
  const headers = headersOf(formats[0]) ?? headersOf(info)
  for (const format of formats) {
    const manifest = manifestOf(format)
    if (manifest) return { kind: 'manifest', ...manifest, headers }
  }
  const [picture, sound] = formats.map(fileOf)
  if (!picture || formats.length > 2) return undefined
  if (formats.length === 1) return { kind: 'file', url: picture, bytes: numberAt(formats[0], 'filesize'), headers }
  return sound ? { kind: 'separate', picture, sound, headers } : undefined
}

function manifestOf(format: unknown): { format: 'hls' | 'dash'; url: string } | undefined {
  const protocol = textAt(format, 'protocol') ?? ''
  const manifestUrl = textAt(format, 'manifest_url')
  if (/^m3u8/.test(protocol)) {
    const url = manifestUrl ?? textAt(format, 'url')
    return url ? { format: 'hls', url } : undefined
  }
  return protocol === 'http_dash_segments' && manifestUrl ? { format: 'dash', url: manifestUrl } : undefined
}

const fileOf = (format: unknown): string | undefined =>
  /^https?$/.test(textAt(format, 'protocol') ?? '') ? textAt(format, 'url') : undefined

/** Headers without which some servers do not answer; none of them is a credential. */
const PASSED_HEADERS = ['user-agent', 'referer', 'origin', 'accept-language']

function headersOf(format: unknown): Record<string, string> | undefined {
  const headers = at(format, 'http_headers')
  if (typeof headers !== 'object' || headers === null) return undefined
  const passed = Object.entries(headers).filter(
    ([name, value]) =>
      PASSED_HEADERS.includes(name.toLowerCase()) && typeof value === 'string' && /^[\x20-\x7e]{1,500}$/.test(value),
  )
  return Object.fromEntries(passed.map(([name, value]) => [name.toLowerCase(), String(value)]))
}
