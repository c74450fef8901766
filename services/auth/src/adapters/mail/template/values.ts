/** Variables of a mail; nested ones are written `{{ .Data.name }}`. */
export type TemplateVariables = Record<string, unknown>

/** Text encoded by `urlquery`; the query of a link does not encode it again. */
export interface EncodedText {
  [ENCODED]: string
}
export const ENCODED = Symbol('encoded')

/** RFC 3986: only unreserved characters stay. Lone surrogates, which no URL can carry, become U+FFFD. */
export const percentEncode = (text: string): string =>
  encodeURIComponent(text.toWellFormed()).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )

export const isEncoded = (value: unknown): value is EncodedText =>
  typeof value === 'object' && value !== null && ENCODED in value

/** Reads own properties only: a template cannot reach JavaScript's own. */
export function fieldOf(value: unknown, name: string): unknown {
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return isObject && Object.hasOwn(value, name) ? (value as TemplateVariables)[name] : undefined
}

/** Go's rule: false, 0, missing and empty values are false. */
export function isTrue(value: unknown): boolean {
  if (typeof value === 'object' && value !== null && !isEncoded(value)) return Object.keys(value).length > 0
  return Boolean(isEncoded(value) ? value[ENCODED] : value)
}

/** Deeper than any accepted metadata. */
const MAX_DEPTH = 100

/** Prints a value as Go does; a missing one is empty. */
export function toText(value: unknown, depth = 0): string {
  if (value === undefined || value === null) return ''
  if (isEncoded(value)) return value[ENCODED]
  if (typeof value !== 'object') return String(value)
  if (depth > MAX_DEPTH) return '…'
  if (Array.isArray(value)) return `[${value.map((item) => toText(item, depth + 1)).join(' ')}]`
  const entries = Object.keys(value).sort()
  return `map[${entries.map((key) => `${key}:${toText(fieldOf(value, key), depth + 1)}`).join(' ')}]`
}
