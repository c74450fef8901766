import { escapeHtml } from '@services/common/html'
import { TemplateError } from './template-error.ts'
import { ENCODED, isEncoded, percentEncode, toText } from './values.ts'

/**
 * Place of the next value in an HTML document. Values may stand in text and between the quotes of an attribute that
 * cannot run anything. They are refused everywhere else, because no escaping is sure to hold there.
 */
export interface HtmlContext {
  place: 'text' | 'comment' | 'tag' | 'value' | 'script' | 'style'
  /** Tag or attribute cut by the end of the last text; the next text completes it. */
  unfinished: string
  tag: string
  attribute: string
  quote: string
  /** Link in the attribute so far; `?` from its query on. */
  link: string
}

export const startOfDocument = (): HtmlContext => ({
  place: 'text',
  unfinished: '',
  tag: '',
  attribute: '',
  quote: '',
  link: '',
})

/** A loop between the parts of a tag could grow it without end, and each part is read again with the next. */
const MAX_UNFINISHED = 4096
const MAX_LINK_KEPT = 4096

/** Moves over the template's own text. */
export function advance(context: HtmlContext, text: string): void {
  const whole = context.unfinished + text
  context.unfinished = ''
  for (let at = 0; at < whole.length; ) at = STEPS[context.place](context, whole, at)
  if (context.unfinished.length > MAX_UNFINISHED) throw new TemplateError('a tag is longer than 4096 characters')
}

type Step = (context: HtmlContext, text: string, at: number) => number

/** A comment or a tag's name, maybe cut off. `<!--[if mso]>` and `<!--[if !mso]><!-->` stay text. */
const MARKUP = /<(?:(!--)(?!\[if|-?>)|(\/?[a-z][^\s>/]*)(?=[\s>/])|\/?(?:[a-z][^\s>/]*)?$)/gi
const ATTRIBUTE = /[\s/]*(?:(>)|([^\s>/][^\s>/=]*)(?:\s*=\s*(?:(["'])|[^\s>"'][^\s>]*)?)?)?/y

const until =
  (end: RegExp): Step =>
  (context, text, at) => {
    end.lastIndex = at
    if (!end.test(text)) return text.length
    context.place = 'text'
    return end.lastIndex
  }

const STEPS: Record<HtmlContext['place'], Step> = {
  text: (context, text, at) => {
    MARKUP.lastIndex = at
    const found = MARKUP.exec(text)
    if (!found) return text.length
    const [, comment, tag] = found
    if (comment) context.place = 'comment'
    else if (!tag) context.unfinished = text.slice(found.index)
    else Object.assign(context, { place: 'tag', tag: tag.toLowerCase() })
    return MARKUP.lastIndex
  },
  // Browsers end a comment at `--!>` too.
  comment: until(/--!?>/g),
  script: until(/(?=<\/script)/gi),
  style: until(/(?=<\/style)/gi),
  tag: (context, text, at) => {
    ATTRIBUTE.lastIndex = at
    const [, close, name, quote] = ATTRIBUTE.exec(text) ?? []
    const end = ATTRIBUTE.lastIndex
    if (close) context.place = context.tag === 'script' || context.tag === 'style' ? context.tag : 'text'
    else if (quote) Object.assign(context, { place: 'value', attribute: name?.toLowerCase(), quote, link: '' })
    else if (name && end === text.length) context.unfinished = text.slice(at)
    return end
  },
  value: (context, text, at) => {
    const end = text.indexOf(context.quote, at)
    extendLink(context, text.slice(at, end === -1 ? undefined : end))
    if (end === -1) return text.length
    context.place = 'tag'
    return end + 1
  },
}

function extendLink(context: HtmlContext, part: string): void {
  if (context.link === '?') return
  const link = context.link + part
  context.link = /[?#]/.test(link) ? '?' : link.slice(0, MAX_LINK_KEPT)
}

/** Attributes whose value changes the meaning of another one or of the document. */
const FORBIDDEN = new Set(['content', 'http-equiv', 'srcdoc', 'sandbox', 'type', 'language', 'charset', 'rel'])
const LINKS = new Set(['href', 'action', 'formaction', 'background', 'cite', 'poster', 'longdesc', 'data', 'manifest'])

const withoutPrefix = (attribute: string) => attribute.replace(/^(data-|[a-z]+:)/, '')
const isLink = (attribute: string) => LINKS.has(withoutPrefix(attribute)) || /src|uri|url|xmlns/.test(attribute)

/** Reason why no value may stand here, or undefined. */
export function refusalAt({ place, unfinished, attribute }: HtmlContext): string | undefined {
  if (place === 'script' || place === 'style') return `no value may stand in <${place}>`
  if (place === 'tag' || unfinished !== '') return 'in a tag, a value may only stand in an attribute with quotes'
  const isForbidden = FORBIDDEN.has(attribute) || withoutPrefix(attribute).startsWith('on')
  return place === 'value' && isForbidden ? `no value may stand in the attribute "${attribute}"` : undefined
}

/** Appears in place of a link or a style that its value makes unsafe; the word that Go's templates use. */
const REFUSED = 'ZgotmplZ'

/** Escapes a value for its place and moves over it. Throws a TemplateError where none may stand. */
export function escapeAt(context: HtmlContext, value: unknown, schemes: ReadonlySet<string>): string {
  const refusal = refusalAt(context)
  if (refusal) throw new TemplateError(refusal)
  const { place, attribute } = context
  if (place === 'value' && isLink(attribute)) return escapeHtml(escapeLink(context, value, schemes))
  const text = toText(value)
  return escapeHtml(place === 'value' && withoutPrefix(attribute) === 'style' && !isPlainStyle(text) ? REFUSED : text)
}

/** Colours, sizes, font names; nothing that ends a declaration, calls a function or loads a file. */
const isPlainStyle = (text: string) => /^[\w#.%\s,+-]*$/.test(text) && !/--|expression|binding/i.test(text)

function escapeLink(context: HtmlContext, value: unknown, schemes: ReadonlySet<string>): string {
  const text = toText(value)
  if (context.link === '?') return isEncoded(value) ? value[ENCODED] : percentEncode(text)
  const written = isSafeLink(context.link + text, schemes) ? normalizeLink(text) : `#${REFUSED}`
  extendLink(context, written)
  return written
}

/** Whether a link with this beginning may be followed: no scheme, or one of the permitted. */
function isSafeLink(link: string, schemes: ReadonlySet<string>): boolean {
  // Browsers drop control characters and blanks; a scheme hidden behind them is refused.
  const [beginning = ''] = link.trim().split(/[/?#]/, 1)
  const colon = beginning.indexOf(':')
  return colon === -1 || schemes.has(beginning.slice(0, colon).toLowerCase())
}

/** Keeps a link's own signs and escapes; encodes all that would end an attribute or is no URL character. */
const normalizeLink = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/%(?![0-9a-fA-F]{2})|[^\w\-.~!#$%&*+,/:;=?@[\]]+/g, (part) =>
      part === '%' ? '%25' : percentEncode(part),
    )
