import { jsonObject } from '../json-object.ts'
import { variablesOf } from './sms-text.ts'

export const HTTP_VARIABLES = ['To', 'Text', 'Code', 'MessageID'] as const

/** Answers by which a generic gateway accepts a message. */
export interface SuccessRule {
  /** Ranges of statuses, ends included. */
  statuses: readonly (readonly [number, number])[]
  /** Members of the JSON answer, all of which must match. */
  facts: readonly { path: string; value: string }[]
}

/** Checks SMS_HTTP_URL. Placeholders may follow the host only, or a number could choose the host. */
export function parseHttpGatewayUrl(text: string): string {
  const [host = ''] = /^https?:\/\/[^/?#]+/i.exec(text) ?? []
  variablesOf(text, HTTP_VARIABLES)
  if (!URL.canParse(text) || host === '' || host.includes('{')) {
    throw new Error('must be an absolute http or https URL, with placeholders after the host only')
  }
  return text
}

/** Parses SMS_HTTP_HEADERS, an object of strings; names in lower case. */
export function parseHttpHeaders(text: string): Record<string, string> {
  const problem = 'must be a JSON object of header names and their texts'
  const entries = Object.entries(jsonObject(text, problem)).map(([name, value]) => {
    const isHeader =
      /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) && typeof value === 'string' && /^[\t\x20-\x7e]*$/.test(value)
    if (!isHeader) throw new Error(problem)
    return [name.toLowerCase(), value]
  })
  return Object.fromEntries(entries)
}

/** Checks the placeholders of SMS_HTTP_BODY; its syntax depends on the headers and is checked with them. */
export function parseHttpBody(text: string): string {
  variablesOf(text, HTTP_VARIABLES)
  return text
}

/** Parses SMS_HTTP_SUCCESS: `200-299`, `200,202`, `200-299,status=ok,messages.0.error=0`. */
export function parseSuccessRule(text: string): SuccessRule {
  const items = text.split(',').map((item) => item.trim())
  const statuses = items.flatMap((item) => {
    const [, from, to = from] = /^([1-5]\d\d)(?:-([1-5]\d\d))?$/.exec(item) ?? []
    return from ? [[Number(from), Number(to)] as const] : []
  })
  const facts = items.flatMap((item) => {
    const [, path, value] = /^([\w.-]*[A-Za-z_][\w.-]*)=(.*)$/.exec(item) ?? []
    return path && value !== undefined ? [{ path, value }] : []
  })
  if (statuses.length === 0 || statuses.length + facts.length < items.length) {
    throw new Error('must list statuses such as 200-299, and members of the answer such as status=ok')
  }
  return { statuses, facts }
}
