/** Text that is markup already. The symbol keeps it unspellable from outside: nothing parsed from JSON can be one. */
export interface Html {
  readonly [MARKUP]: string
}

export type HtmlValue = Html | string | number | undefined | null | false | readonly HtmlValue[]

const MARKUP: unique symbol = Symbol('markup')

/**
 * Tagged template that escapes every value unless `html` or `raw` made it. Absent values (undefined, null, false) are
 * empty, lists are joined. Safe in text and in quoted attributes only: never in a script, a style, or a bare attribute,
 * and an address still needs its scheme checked.
 */
export function html(strings: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return raw(strings.reduce((text, part, index) => text + toMarkup(values[index - 1]) + part))
}

/** Vouches that the text is markup. For constants of ours only. */
export function raw(markup: string): Html {
  return { [MARKUP]: markup }
}

/** The finished document. */
export function toText(markup: Html): string {
  return markup[MARKUP]
}

/** A JSON data block (not executed by browsers). No value can close the element or open a comment in it. */
export function jsonLd(data: unknown): Html {
  const json = JSON.stringify(data).replace(/[<>&\u2028\u2029]/g, toUnicodeEscape)
  return raw(`<script type="application/ld+json">${json}</script>`)
}

/** Escapes for text and quoted attributes, of HTML and of XML. */
export function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char)
}

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function toMarkup(value: HtmlValue): string {
  if (value === undefined || value === null || value === false) return ''
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value))
  if (MARKUP in value) return value[MARKUP]
  return value.map(toMarkup).join('')
}

const toUnicodeEscape = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
