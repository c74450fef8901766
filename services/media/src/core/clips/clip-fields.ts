// What a caller may say about a clip: title, tags, nsfw, attribution. The one rule: text is stored as it will be shown,
// without control and invisible characters and broken halves. Forms: ../uploads/form-fields.ts. JSON: ../imports/import.routes.ts.
import { ApiError } from '@services/common/errors'
import type { Attribution } from '../../db/attribution.ts'
import { apiError } from '../../errors.ts'

export interface ClipFields {
  title: string | null
  tags: string[]
  nsfw: boolean
  attribution: Attribution | null
}

/** contract/media.md 2.3 and 2.5. */
const MAX_TITLE = 200
const MAX_TAGS = 30
const MAX_TAG = 50
/**
 * How many texts are looked at for those tags, and how long each may be as it was sent. Cleaning 64 KiB of empty tags takes
 * 60 ms, a form has room for sixty times as much, and all others wait meanwhile.
 */
export const MAX_TAG_TEXTS = 1_000
const MAX_TAG_UNITS = 500
const MAX_USER = 100
const MAX_URL = 2048

const SOCIAL_SITES = ['twitter', 'reddit', 'instagram']
const SOCIAL_HOSTS: Record<string, string> = {
  'twitter.com': 'twitter',
  'x.com': 'twitter',
  'reddit.com': 'reddit',
  'instagram.com': 'instagram',
}

export interface RawFields {
  title?: string
  tags?: readonly string[]
  nsfw?: boolean
  attribution?: { site?: string; user?: string; url?: string }
}

/** Checks and cleans. Throws invalid_field, which names the field as the caller spelled it. */
export function cleanFields(raw: RawFields, attributionPrefix: 'attribution.' | 'attribution_'): ClipFields {
  return {
    title: cleanTitle(raw.title ?? ''),
    tags: cleanTags(raw.tags ?? []),
    nsfw: raw.nsfw ?? false,
    attribution: raw.attribution ? cleanAttribution(raw.attribution, attributionPrefix) : null,
  }
}

/** What a site says about a clip; its texts are nobody's to correct, so they are cut or left out instead of refused. */
export interface SaidFields {
  title?: string | undefined
  nsfw?: boolean | undefined
  attribution?: { site: string; user?: string | undefined; url?: string | undefined } | undefined
}

/** Fills what the caller did not say with what the site does. */
export function fillFields(fields: ClipFields, given: { nsfw: boolean }, said: SaidFields): ClipFields {
  return {
    ...fields,
    title: fields.title ?? cutTitle(said.title ?? ''),
    nsfw: given.nsfw ? fields.nsfw : said.nsfw === true,
    attribution: fields.attribution ?? (said.attribution ? usableAttribution(said.attribution) : null),
  }
}

function cutTitle(text: string): string | null {
  const title = [...oneLine(text.slice(0, LONGEST_SAID))]
  return (
    (title.length > MAX_TITLE
      ? `${title
          .slice(0, MAX_TITLE - 1)
          .join('')
          .trimEnd()}…`
      : title.join('')) || null
  )
}

/** Before anything is done with it: whole articles come as titles. */
const LONGEST_SAID = 2000

function usableAttribution({ site, user, url }: NonNullable<SaidFields['attribution']>): Attribution | null {
  const tries = [
    { site, ...(user ? { user } : {}), ...(url ? { url } : {}) },
    { site, ...(url ? { url } : {}) },
    { site },
  ]
  for (const attempt of tries) {
    try {
      return cleanAttribution(attempt, 'attribution.')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }
  return null
}

/** `message` completes the sentence with the field's name. */
export const invalidField = (param: string, rule: string) =>
  apiError('invalid_field', { message: `${param} ${rule}.`, details: { param } })

/** An absolute http(s) URL without credentials, as the browser would spell it. */
export function cleanUrl(param: string, text: string): string {
  const url = text.length <= MAX_URL ? URL.parse(text.trim()) : null
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (!url || !isWeb || url.href.length > MAX_URL) {
    throw invalidField(param, `must be an absolute http or https URL of at most ${MAX_URL} characters`)
  }
  if (url.username || url.password) throw invalidField(param, 'must not hold a user name or password')
  return url.href
}

function cleanTitle(text: string): string | null {
  const title = oneLine(text)
  if (lengthOf(title) > MAX_TITLE) throw invalidField('title', `must be at most ${MAX_TITLE} characters`)
  return title || null
}

/** By which tags are compared. */
export const tagKey = (tag: string): string => tag.toLowerCase()

/** Two spellings of one tag are one; the first one stays. */
function cleanTags(texts: readonly string[]): string[] {
  if (texts.length > MAX_TAG_TEXTS) throw tooManyTags()
  const tags = new Map<string, string>()
  for (const text of texts) {
    const tag = text.length > MAX_TAG_UNITS ? undefined : oneLine(text)
    if (tag === undefined || lengthOf(tag) > MAX_TAG) {
      throw invalidField('tags', `must be at most ${MAX_TAG} characters each`)
    }
    const key = tagKey(tag)
    if (!tag || tags.has(key)) continue
    if (tags.size === MAX_TAGS) throw tooManyTags()
    tags.set(key, tag)
  }
  return [...tags.values()]
}

const tooManyTags = () => invalidField('tags', `must be at most ${MAX_TAGS}`)

function cleanAttribution(raw: NonNullable<RawFields['attribution']>, prefix: string): Attribution {
  const { site = '', user = '', url = '' } = raw
  const cleanUser = oneLine(user).replace(/^(@|u\/)/, '')
  if (lengthOf(cleanUser) > MAX_USER) throw invalidField(`${prefix}user`, `must be at most ${MAX_USER} characters`)
  const whole = url.trim() ? cleanUrl(`${prefix}url`, url) : undefined
  // In a form each field is optional (the specification); an address tells its site.
  const implied = prefix === 'attribution_' && whole ? new URL(whole).host : ''
  return {
    site: cleanSite(oneLine(site) || implied, `${prefix}site`),
    ...(cleanUser ? { user: cleanUser } : {}),
    ...(whole ? { url: whole } : {}),
  }
}

function cleanSite(site: string, param: string): string {
  if (site === '') throw invalidField(param, 'is required in an attribution')
  const social = SOCIAL_HOSTS[site.toLowerCase().replace(/^(www|m|mobile|old)\./, '')] ?? site.toLowerCase()
  if (SOCIAL_SITES.includes(social)) return social
  return cleanUrl(param, BARE_HOST.test(site) ? `https://${site}` : site)
}

/** `imgur.com`, as people write a site; a scheme or a user name before it is none. */
const BARE_HOST = /^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+(:\d+)?(\/|$)/u

/**
 * Turns text round or hides in it, so that it reads as what it is not (UTS 39, UTR 36). Emoji and some scripts need the
 * joiners and the choice of a variant; the flags of England, Scotland and Wales are spelled with six invisible letters.
 */
const DISGUISES =
  /(?![\u200c\u200d]|\p{Variation_Selector})(?<!\u{1f3f4}[\u{e0020}-\u{e007f}]{0,5})[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu

/** NFC, without control characters, disguises and half characters, runs of white space as one blank. */
export function oneLine(text: string): string {
  if (text === '') return ''
  const line = text
    .toWellFormed()
    .normalize('NFC')
    .replaceAll(/(?!\s)\p{Cc}/gu, '')
    .replaceAll(DISGUISES, '')
    .replaceAll(/\s+/g, ' ')
    .trim()
  return /[^\p{Default_Ignorable_Code_Point}\s]/u.test(line) ? line : ''
}

/** In characters as people count them, not in UTF-16 units. */
const lengthOf = (text: string) => [...text].length
