import { createHmac } from 'node:crypto'

export interface OAuth1Request {
  method: 'GET' | 'POST'
  /** URL with its query, which is signed too. */
  url: string
  /** The `oauth_…` parameters, without the signature. */
  parameters: Readonly<Record<string, string>>
}

/** Signs a request by HMAC-SHA1 (RFC 5849 3.4). */
export function oauth1Signature(
  { method, url, parameters }: OAuth1Request,
  secrets: { consumer: string; token: string },
): string {
  const { origin, pathname, searchParams } = new URL(url)
  const pairs = [...searchParams, ...Object.entries(parameters)]
    .map((pair) => pair.map(percentEncode) as [string, string])
    .sort(byNameThenValue)
    .map((pair) => pair.join('='))
    .join('&')
  const text = [method, origin + pathname, pairs].map(percentEncode).join('&')
  const key = [secrets.consumer, secrets.token].map(percentEncode).join('&')
  return createHmac('sha1', key).update(text).digest('base64')
}

/** Builds the Authorization header (RFC 5849 3.5.1). */
export function oauth1Authorization(request: OAuth1Request, secrets: { consumer: string; token: string }): string {
  const signed = { ...request.parameters, oauth_signature: oauth1Signature(request, secrets) }
  const pairs = Object.entries(signed).map(([name, value]) => `${percentEncode(name)}="${percentEncode(value)}"`)
  return `OAuth ${pairs.join(', ')}`
}

/** RFC 5849 3.6: encodes all but RFC 3986's unreserved characters; JavaScript leaves five more. */
const percentEncode = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`)

/** Order by bytes (RFC 5849 3.4.1.3.2): encoded text is ASCII, which JavaScript compares bytewise. */
const byNameThenValue = ([name, value]: [string, string], [otherName, otherValue]: [string, string]) =>
  compare(name, otherName) || compare(value, otherValue)

const compare = (one: string, other: string) => (one < other ? -1 : Number(one > other))
