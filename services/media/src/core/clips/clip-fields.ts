// Fields of a clip that callers write: title, tags, nsfw, attribution. Text is stored as it is shown, without control
// characters, invisible characters and lone surrogates. Tests: test/fields.test.ts.
import { ApiError } from '@services/common/errors'
import type { Attribution } from '../../db/tables.ts'
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
/** Most cleaned texts, and UTF-16 units of each: 64 KiB of empty tags take 60 ms; a form holds 60 times as much. */
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

/** Throws invalid_field, which names the field as the caller spelled it. */
export function cleanFields(raw: RawFields, attributionPrefix: 'attribution.' | 'attribution_'): ClipFields {
  return {
    title: cleanTitle(raw.title ?? ''),
    tags: cleanTags(raw.tags ?? []),
    nsfw: raw.nsfw ?? false,
    attribution: raw.attribution ? cleanAttribution(raw.attribution, attributionPrefix) : null,
  }
}

/** Fields that a site gives. The caller cannot correct them, so bad ones are cut or left out instead of refused. */
export interface SaidFields extends Pick<RawFields, 'title' | 'nsfw'> {
  attribution?: Attribution | undefined
}

/** Fills in from the site the fields that the caller left out. */
export function fillFields(fields: ClipFields, given: { nsfw: boolean }, said: SaidFields): ClipFields {
  return {
    ...fields,
    title: fields.title ?? cutTitle(said.title ?? ''),
    nsfw: given.nsfw ? fields.nsfw : said.nsfw === true,
    attribution: fields.attribution ?? (said.attribution ? usableAttribution(said.attribution) : null),
  }
}

function cutTitle(text: string): string | null {
  const title = oneLine(text.slice(0, LONGEST_SAID))
  if (lengthOf(title) <= MAX_TITLE) return title || null
  const start = [...title].slice(0, MAX_TITLE - 1).join('')
  return `${start.trimEnd()}…`
}

/** Cut before anything else is done: some sites give whole articles as titles. */
const LONGEST_SAID = 2000

function usableAttribution({ site, user, url }: NonNullable<SaidFields['attribution']>): Attribution | null {
  for (const attempt of [{ site, user, url }, { site, url }, { site }]) {
    try {
      return cleanAttribution(attempt, 'attribution.')
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
    }
  }
  return null
}

/** `rule` completes the sentence that begins with the field's name. */
export const invalidField = (param: string, rule: string) =>
  apiError('invalid_field', { message: `${param} ${rule}.`, details: { param } })

/** Returns an absolute http(s) URL without credentials, as a browser spells it. */
export function cleanUrl(param: string, text: string): string {
  const url = text.length <= MAX_URL ? URL.parse(text.trim()) : null
  const isWeb = url?.protocol === 'http:' || url?.protocol === 'https:'
  if (!url || !isWeb || url.href.length > MAX_URL) {
    throw invalidField(param, `must be an absolute http or https URL of at most ${MAX_URL} characters`)
  }
  if (url.username || url.password) throw invalidField(param, 'must not hold a user name or password')
  return url.href
}

/** Reads the spellings that forms and scripts send (contract/media.md 2.4); an empty text is false. */
export function readFlag(param: string, text: string): boolean {
  if (/^(true|1|on|yes)$/i.test(text.trim())) return true
  if (/^(false|0|off|no|)$/i.test(text.trim())) return false
  throw invalidField(param, 'must be true or false')
}

/** Null for an empty title. Throws invalid_field. */
export function cleanTitle(text: string): string | null {
  const title = oneLine(text)
  if (lengthOf(title) > MAX_TITLE) throw invalidField('title', `must be at most ${MAX_TITLE} characters`)
  return title || null
}

/** Form in which tags are compared. */
export const tagKey = (tag: string): string => tag.toLowerCase()

/** Removes duplicates; the first spelling of a tag stays. */
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
  // Each field of a form is optional (the specification): the URL implies its site.
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

/** A host as people write it: `imgur.com`, without a scheme or a user name. */
const BARE_HOST = /^[\p{L}\p{N}-]+(\.[\p{L}\p{N}-]+)+(:\d+)?(\/|$)/u

/**
 * Characters that reverse text or hide in it (UTS 39, UTR 36). Emoji and some scripts need joiners and variation
 * selectors; the flags of England, Scotland and Wales consist of six invisible letters.
 */
const DISGUISES =
  /(?![\u200c\u200d]|\p{Variation_Selector})(?<!\u{1f3f4}[\u{e0020}-\u{e007f}]{0,5})[\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu

/** NFC without control characters, disguises and lone surrogates; each run of white space becomes one blank. */
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

/** Cleans a text of several lines; null if nothing is left. Throws invalid_field for more than `most` characters. */
export function plainText(param: string, text: string, most: number): string | null {
  const lines = text
    .slice(0, 8 * most)
    .split(/\r\n?|\n/)
    .map(oneLine)
  const cleaned = lines.join('\n').trim()
  if (text.length > 8 * most || lengthOf(cleaned) > most)
    throw invalidField(param, `must be at most ${most} characters`)
  return cleaned || null
}

/** Length in code points, not in UTF-16 units. */
const lengthOf = (text: string) => [...text].length
