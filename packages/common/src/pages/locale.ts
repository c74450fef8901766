export interface LocaleSettings {
  /** Languages that texts exist in, lower case. */
  locales: readonly string[]
  defaultLocale: string
}

/** Subset of BCP 47 that texts need; also rejects anything that could escape from a path. */
const TAG = /^[a-z]{2,3}(-[a-z0-9]{2,8}){0,3}$/

export const isLocale = (text: string): boolean => TAG.test(text)

/** Longer than any real list of languages. */
const MAX_HEADER_LENGTH = 500

/**
 * Picks the language of a text: `locale` of the reader's data (`de`, `de-DE`, `de_DE`), then the best match of
 * `Accept-Language`, then the default. Tags are shortened from the right until one matches (RFC 4647 3.4).
 */
export function pickLocale(
  { locales, defaultLocale }: LocaleSettings,
  from: { metadata?: { locale?: unknown }; acceptLanguage?: string | undefined },
): string {
  const own = typeof from.metadata?.locale === 'string' ? [from.metadata.locale] : []
  for (const wanted of [...own, ...acceptedLanguages(from.acceptLanguage ?? '')]) {
    const found = lookUp(locales, wanted.slice(0, MAX_HEADER_LENGTH).toLowerCase().replaceAll('_', '-'))
    if (found) return found
  }
  return defaultLocale
}

function lookUp(locales: readonly string[], wanted: string): string | undefined {
  if (!isLocale(wanted)) return undefined
  for (let tag = wanted; tag !== ''; tag = tag.slice(0, Math.max(0, tag.lastIndexOf('-')))) {
    if (locales.includes(tag)) return tag
  }
  return undefined
}

/** Languages of the header, best first, without those marked `q=0`. */
function acceptedLanguages(header: string): string[] {
  return header
    .slice(0, MAX_HEADER_LENGTH)
    .split(',')
    .map((range) => {
      const [tag = '', ...parameters] = range.split(';').map((part) => part.trim())
      const quality = parameters.find((parameter) => /^q=/i.test(parameter))?.slice(2) ?? '1'
      return { tag, quality: Number(quality) }
    })
    .filter(({ quality }) => quality > 0)
    .sort((a, b) => b.quality - a.quality)
    .map(({ tag }) => tag)
}
