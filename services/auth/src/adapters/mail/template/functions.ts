import { escapeHtml } from '@services/common/html'
import { ENCODED, fieldOf, isEncoded, isTrue, percentEncode, toText } from './values.ts'

export interface TemplateFunction {
  least: number
  most: number
  call(values: unknown[], mode: 'html' | 'text'): unknown
}

/** Functions of templates with the number of their arguments. None fails: a meaningless call yields an empty value. */
export const FUNCTIONS: Record<string, TemplateFunction> = {
  and: { least: 1, most: 100, call: (values) => firstOrLast(values, (value) => !isTrue(value)) },
  or: { least: 1, most: 100, call: (values) => firstOrLast(values, isTrue) },
  not: { least: 1, most: 1, call: ([value]) => !isTrue(value) },
  eq: { least: 2, most: 100, call: ([value, ...others]) => others.some((other) => compare(value, other) === 0) },
  ne: { least: 2, most: 2, call: ([a, b]) => compare(a, b) !== 0 },
  lt: { least: 2, most: 2, call: ([a, b]) => (compare(a, b) ?? 0) < 0 },
  le: { least: 2, most: 2, call: ([a, b]) => (compare(a, b) ?? 1) <= 0 },
  gt: { least: 2, most: 2, call: ([a, b]) => (compare(a, b) ?? 0) > 0 },
  ge: { least: 2, most: 2, call: ([a, b]) => (compare(a, b) ?? -1) >= 0 },
  len: { least: 1, most: 1, call: ([value]) => lengthOf(value) },
  index: { least: 1, most: 100, call: ([value, ...keys]) => keys.reduce(at, value) },
  slice: { least: 1, most: 3, call: ([value, from, to]) => sliceOf(value, from, to) },
  print: { least: 0, most: 100, call: (values) => values.map((value) => toText(value)).join('') },
  println: { least: 0, most: 100, call: (values) => `${values.map((value) => toText(value)).join(' ')}\n` },
  printf: { least: 1, most: 100, call: ([format, ...values]) => printf(toText(format), values) },
  // HTML templates escape all output; escaping twice would show entities.
  html: { least: 1, most: 1, call: ([value], mode) => (mode === 'html' ? value : escapeHtml(toText(value))) },
  js: { least: 1, most: 1, call: ([value]) => escapeScriptText(toText(value)) },
  urlquery: {
    least: 1,
    most: 1,
    call: ([value]) => (isEncoded(value) ? value : { [ENCODED]: percentEncode(toText(value)) }),
  },
}

/** Everything but letters and digits as \uXXXX, which scripts and JSON understand inside quotes. */
const escapeScriptText = (text: string): string =>
  text.replaceAll(/[^A-Za-z0-9]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)

function firstOrLast(values: unknown[], isWanted: (value: unknown) => boolean): unknown {
  const index = values.findIndex(isWanted)
  return values.at(index)
}

/** Order of two values of one type; undefined if they cannot be compared. */
function compare(a: unknown, b: unknown): number | undefined {
  const [left, right] = [isEncoded(a) ? a[ENCODED] : (a ?? undefined), isEncoded(b) ? b[ENCODED] : (b ?? undefined)]
  if (left === right) return 0
  if (typeof left === 'string' && typeof right === 'string') return left < right ? -1 : 1
  if (typeof left === 'number' && typeof right === 'number') return left - right
  return undefined
}

function lengthOf(value: unknown): number {
  if (typeof value === 'string') return value.length
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0
}

/** Part of a text or list; an index outside of it is its beginning or end. */
function sliceOf(value: unknown, from: unknown = 0, to?: unknown): unknown {
  if (typeof value !== 'string' && !Array.isArray(value)) return undefined
  const place = (index: unknown) => (typeof index === 'number' ? Math.max(0, index) : 0)
  return to === undefined ? value.slice(place(from)) : value.slice(place(from), place(to))
}

const at = (value: unknown, key: unknown) =>
  Array.isArray(value) ? value[typeof key === 'number' ? key : -1] : fieldOf(value, toText(key))

/** `%s %v %d %q %t %f %.2f %%`; a missing value is empty, an unknown verb stays as written. */
function printf(format: string, values: unknown[]): string {
  let next = 0
  return format.replaceAll(/%(\.\d{1,2})?([svdqtf%])/g, (_match, digits: string | undefined, verb: string) => {
    if (verb === '%') return '%'
    const value = values[next++]
    if (verb === 'q') return JSON.stringify(toText(value))
    if (verb === 'f' && typeof value === 'number') return value.toFixed(Math.min(Number((digits ?? '.6').slice(1)), 20))
    return toText(value)
  })
}
