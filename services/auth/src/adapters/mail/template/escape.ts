import { escapeHtml } from '@services/common/html'

/** In an attribute without quotes a blank, a backtick or `=` would end the value or begin another one. */
export const escapeUnquoted = (text: string): string =>
  escapeHtml(text).replaceAll(/[\s`=]/g, (character) => `&#${character.charCodeAt(0)};`)

/** What appears in place of a value that its context does not allow; the name that Go's templates use. */
export const REFUSED = 'ZgotmplZ'

/** RFC 3986 unreserved characters stay. Lone surrogates, which no URL can carry, become U+FFFD. */
export const percentEncode = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replaceAll(/[!'()*]/g, toPercent)

/** Keeps a URL's own signs and its escapes; encodes what would end an attribute or is no URL character. */
export const normalizeUrl = (text: string): string =>
  text
    .toWellFormed()
    .replaceAll(/%(?![0-9a-fA-F]{2})|[^\w\-.~!#$%&*+,/:;=?@[\]]+/g, (part) =>
      part === '%' ? '%25' : percentEncode(part),
    )

const toPercent = (character: string) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`

/** Inside the quotes of a script's text: everything but letters and digits as \uXXXX, which JSON understands too. */
export const escapeScriptText = (text: string): string =>
  text.replaceAll(/[^A-Za-z0-9]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

/** A value where a script has an expression: JSON whose texts hold nothing that HTML or a script could misread. */
export const toScriptValue = (value: unknown): string => {
  if (typeof value === 'string') return `"${escapeScriptText(value)}"`
  const json = JSON.stringify(value ?? null)
  return json.replaceAll(/[<>&'`/\u2028\u2029]/g, escapeScriptText)
}

/** Colours, sizes, font names; nothing that ends a declaration, calls a function or loads a file. */
export const filterCss = (text: string): string =>
  /^[\w#.%\s,+-]*$/.test(text) && !/--|expression|binding/i.test(text) ? text : REFUSED

/** Whether a link with this beginning may be followed: no scheme, or one of the permitted. */
export function isSafeUrl(url: string, schemes: ReadonlySet<string>): boolean {
  // Browsers drop control characters and blanks; what hides a scheme behind them is refused.
  const [beginning = ''] = url.trim().split(/[/?#]/, 1)
  const colon = beginning.indexOf(':')
  return colon === -1 || schemes.has(beginning.slice(0, colon).toLowerCase())
}
