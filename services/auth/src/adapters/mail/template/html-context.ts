import { escapeHtml } from '@services/common/html'
import {
  escapeScriptText,
  escapeUnquoted,
  filterCss,
  isSafeUrl,
  normalizeUrl,
  percentEncode,
  REFUSED,
  toScriptValue,
} from './escape.ts'
import { ENCODED, isEncoded, toText } from './values.ts'

/**
 * Where in an HTML document the next value would land. The template's own text moves the state on; a value is escaped so
 * that it cannot leave its place. The template is trusted, its values are not.
 */
export interface HtmlContext {
  place: 'text' | 'comment' | 'tag-name' | 'tag' | 'attribute-name' | 'before-value' | 'value' | 'script' | 'style'
  tag: string
  attribute: string
  quote: '"' | "'" | ''
  value: 'plain' | 'url' | 'style' | 'script' | 'refused'
  /** What the link has so far. */
  url: string
  /** What a script is in: a text of these quotes, a comment, or neither. */
  script: '' | '"' | "'" | '`' | '//' | '/*'
}

export const startOfDocument = (): HtmlContext => ({
  place: 'text',
  tag: '',
  attribute: '',
  quote: '',
  value: 'plain',
  url: '',
  script: '',
})

/** Moves on over the template's own text. */
export function advance(context: HtmlContext, text: string): void {
  let at = 0
  while (at < text.length) at = STEPS[context.place](context, text, at)
}

/** What only Outlook reads or skips, `<!--[if mso]> … <![endif]-->` and `<!--[if !mso]><!--> …`, is markup like any other. */
const COMMENT = /<!--(?!\[if|-?>)/y
/** Browsers take the second one too. */
const COMMENT_END = /--!?>/g

type Step = (context: HtmlContext, text: string, at: number) => number

const STEPS: Record<HtmlContext['place'], Step> = {
  text: (context, text, at) => {
    const open = text.indexOf('<', at)
    if (open === -1) return text.length
    const comment = matchAt(COMMENT, text, open)
    if (comment !== '') {
      context.place = 'comment'
      return open + comment.length
    }
    if (open + 1 < text.length && !/[a-z/]/i.test(text[open + 1] as string)) return open + 1
    context.place = 'tag-name'
    context.tag = ''
    return open + 1
  },
  comment: (context, text, at) => {
    COMMENT_END.lastIndex = at
    if (!COMMENT_END.test(text)) return text.length
    context.place = 'text'
    return COMMENT_END.lastIndex
  },
  'tag-name': (context, text, at) => {
    const name = matchAt(/[^\s>]*/y, text, at)
    context.tag += name.toLowerCase()
    if (at + name.length < text.length) context.place = 'tag'
    return at + name.length
  },
  tag: (context, text, at) => {
    const here = at + matchAt(/[\s/]*/y, text, at).length
    if (here === text.length) return here
    if (text[here] === '>') return endTag(context, here + 1)
    context.place = 'attribute-name'
    context.attribute = ''
    return here
  },
  'attribute-name': (context, text, at) => {
    const name = matchAt(/[^\s=>/]*/y, text, at)
    context.attribute += name.toLowerCase()
    const here = at + name.length
    if (here === text.length) return here
    const equals = matchAt(/\s*=/y, text, here)
    context.place = equals === '' ? 'tag' : 'before-value'
    return here + equals.length
  },
  'before-value': (context, text, at) => {
    const here = at + matchAt(/\s*/y, text, at).length
    if (here === text.length) return here
    if (text[here] === '>') return endTag(context, here + 1)
    const quote = text[here] === '"' || text[here] === "'" ? (text[here] as '"' | "'") : ''
    beginValue(context, quote)
    return here + quote.length
  },
  value: (context, text, at) => {
    const end = context.quote ? text.indexOf(context.quote, at) : at + matchAt(/[^\s>]*/y, text, at).length
    const stop = end === -1 ? text.length : end
    const part = text.slice(at, stop)
    if (context.value === 'url') extendUrl(context, part)
    if (context.value === 'script') advanceScript(context, part)
    if (stop === text.length) return stop
    context.place = 'tag'
    return stop + context.quote.length
  },
  script: (context, text, at) => {
    const end = indexOfIgnoringCase(text, '</script', at)
    advanceScript(context, text.slice(at, end === -1 ? undefined : end))
    if (end === -1) return text.length
    context.place = 'text'
    return end
  },
  style: (context, text, at) => {
    const end = indexOfIgnoringCase(text, '</style', at)
    if (end === -1) return text.length
    context.place = 'text'
    return end
  },
}

function matchAt(pattern: RegExp, text: string, at: number): string {
  pattern.lastIndex = at
  return pattern.exec(text)?.[0] ?? ''
}

function indexOfIgnoringCase(text: string, wanted: string, from: number): number {
  const pattern = new RegExp(wanted, 'gi')
  pattern.lastIndex = from
  return pattern.exec(text)?.index ?? -1
}

function endTag(context: HtmlContext, next: number): number {
  context.place = context.tag === 'script' || context.tag === 'style' ? context.tag : 'text'
  context.script = ''
  return next
}

function beginValue(context: HtmlContext, quote: HtmlContext['quote']): void {
  context.place = 'value'
  context.quote = quote
  context.value = kindOfAttribute(context.attribute)
  context.url = ''
  context.script = ''
}

/** Attributes whose value changes what another one or the document means. */
const REFUSING = new Set(['content', 'http-equiv', 'srcdoc', 'sandbox', 'type', 'language', 'charset', 'rel'])
const URLS = new Set(['href', 'action', 'formaction', 'background', 'cite', 'poster', 'longdesc', 'data', 'manifest'])

function kindOfAttribute(attribute: string): HtmlContext['value'] {
  const name = attribute.replace(/^(data-|[a-z]+:)/, '')
  if (name.startsWith('on')) return 'script'
  if (name === 'style') return 'style'
  if (REFUSING.has(attribute)) return 'refused'
  return URLS.has(name) || /src|uri|url|xmlns/.test(attribute) ? 'url' : 'plain'
}

/** Enough to see the scheme and whether the query has begun. */
const KEPT_OF_URL = 4096

function extendUrl(context: HtmlContext, part: string): void {
  if (isInQuery(context)) return
  const url = context.url + part
  context.url = /[?#]/.test(url) ? '?' : url.slice(0, KEPT_OF_URL)
}

const isInQuery = ({ url }: HtmlContext) => url === '?'

const SCRIPT_PART = /\\[\s\S]|\/\/|\/\*|\*\/|["'`\n]/g

function advanceScript(context: HtmlContext, text: string): void {
  for (const [part] of text.matchAll(SCRIPT_PART)) {
    if (context.script === '') {
      if (/^["'`]$|^\/[/*]$/.test(part)) context.script = part as HtmlContext['script']
    } else if (isEndOf(context.script, part)) context.script = ''
  }
}

const isEndOf = (script: HtmlContext['script'], part: string) =>
  script === '//' ? part === '\n' : script === '/*' ? part === '*/' : part === script

/** The value as it may stand here; moves on over it. */
export function escapeAt(context: HtmlContext, value: unknown, schemes: ReadonlySet<string>): string {
  switch (context.place) {
    case 'text':
    case 'comment':
      return escapeHtml(toText(value))
    case 'script':
      return escapeInScript(context, value)
    case 'style':
      return filterCss(toText(value))
    case 'before-value': {
      beginValue(context, '')
      const written = escapeValue(context, value, schemes)
      if (written !== '') return written
      // These quotes end the attribute: what follows at once is the name of another one.
      context.place = 'tag'
      return '""'
    }
    case 'value':
      return escapeValue(context, value, schemes)
    case 'tag':
    case 'attribute-name':
    case 'tag-name':
      return nameOrRefused(context, toText(value))
  }
}

function escapeValue(context: HtmlContext, value: unknown, schemes: ReadonlySet<string>): string {
  const quoted = context.quote ? escapeHtml : escapeUnquoted
  switch (context.value) {
    case 'url':
      return quoted(escapeUrl(context, value, schemes))
    case 'style':
      return quoted(filterCss(toText(value)))
    case 'script':
      return quoted(escapeInScript(context, value))
    case 'refused':
      return REFUSED
    case 'plain':
      return quoted(toText(value))
  }
}

function escapeUrl(context: HtmlContext, value: unknown, schemes: ReadonlySet<string>): string {
  const text = toText(value)
  if (isInQuery(context)) return isEncoded(value) ? value[ENCODED] : percentEncode(text)
  const isSafe = isSafeUrl(context.url + text, schemes)
  const written = isSafe ? normalizeUrl(text) : `#${REFUSED}`
  extendUrl(context, written)
  return written
}

function escapeInScript({ script }: HtmlContext, value: unknown): string {
  if (script === '//' || script === '/*') return ''
  if (script !== '') return escapeScriptText(toText(value))
  // Blanks on both sides, as Go does: `x={{ . }}` must not join with what is beside it.
  return ` ${toScriptValue(isEncoded(value) ? value[ENCODED] : value)} `
}

/** The name of an attribute may be a value where it cannot change what the page does. */
function nameOrRefused(context: HtmlContext, text: string): string {
  const isHeadingLevel = context.place === 'tag-name' && /^\/?h$/.test(context.tag) && /^[1-6]$/.test(text)
  const isPlainName =
    context.place !== 'tag-name' && /^[a-z][a-z0-9-]*$/i.test(text) && kindOfAttribute(text.toLowerCase()) === 'plain'
  const written = text === '' || isHeadingLevel || isPlainName ? text : REFUSED
  if (context.place === 'tag' && written !== '') {
    context.place = 'attribute-name'
    context.attribute = ''
  }
  if (context.place === 'attribute-name') context.attribute += written.toLowerCase()
  return written
}
