/** Trusted markup. The symbol is private, so nothing parsed from JSON can pass for it. */
export interface Html {
  readonly [MARKUP]: string
}

export type HtmlValue = Html | string | number | undefined | null | false | readonly HtmlValue[]

const MARKUP: unique symbol = Symbol('markup')

/**
 * Escapes every value that `html` or `raw` did not make. Absent values (undefined, null, false) are empty, lists are
 * joined. Safe in text and quoted attributes, not in scripts, styles or unquoted attributes; URLs still need their
 * scheme checked.
 */
export function html(strings: TemplateStringsArray, ...values: HtmlValue[]): Html {
  return raw(strings.reduce((text, part, index) => text + toMarkup(values[index - 1]) + part))
}

/** Declares a text to be markup. Constants of ours only. */
export const raw = (markup: string): Html => ({ [MARKUP]: markup })

export const toText = (markup: Html): string => markup[MARKUP]

/** Renders a JSON-LD block, in which no value can close the element or open a comment. */
export function jsonLd(data: unknown): Html {
  return raw(`<script type="application/ld+json">${jsonText(data)}</script>`)
}

/** Renders values for the scripts of a page, which read them from the element with this id. */
export const jsonBlock = (id: string, data: unknown): Html =>
  raw(`<script type="application/json" id="${id}">${jsonText(data)}</script>`)

const jsonText = (data: unknown) => JSON.stringify(data).replace(/[<>&\u2028\u2029]/g, toUnicodeEscape)

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => ESCAPES[char] ?? char)

const ESCAPES: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

function toMarkup(value: HtmlValue): string {
  if (value === undefined || value === null || value === false) return ''
  if (typeof value === 'string' || typeof value === 'number') return escapeHtml(String(value))
  if (MARKUP in value) return value[MARKUP]
  return value.map(toMarkup).join('')
}

const toUnicodeEscape = (char: string) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`
