import type { SessionBody } from '../sessions/issue-tokens.ts'

/** Puts parameters into the query, replacing those of the same name; all others stay as written. */
export function withQuery(target: string, parameters: Record<string, string>): string {
  const [beforeFragment = '', ...fragment] = target.split('#')
  const [path = '', ...query] = beforeFragment.split('?')
  const kept = query
    .join('?')
    .split('&')
    .filter((pair) => pair !== '' && !Object.hasOwn(parameters, pair.split('=', 1)[0] as string))
  const joined = [...kept, new URLSearchParams(parameters).toString()].join('&')
  return `${path}?${joined}${fragment.length > 0 ? `#${fragment.join('#')}` : ''}`
}

/** Sets the parameters as the fragment, which browsers do not send to the server; `sb` marks it as ours. */
export function withFragment(target: string, parameters: Record<string, string>): string {
  const [withoutFragment = ''] = target.split('#', 1)
  const marked = new URLSearchParams({ ...parameters, sb: '' })
  marked.sort()
  return `${withoutFragment}#${marked}`
}

/**
 * `error` of a redirect, by the status of our refusal (RFC 6749 4.1.2.1; contract/auth-core.md 2.2). Others have none.
 */
export const ERROR_NAMES: Record<number, string> = {
  400: 'invalid_request',
  401: 'unauthorized_client',
  403: 'access_denied',
  500: 'server_error',
  503: 'temporarily_unavailable',
}

export const sessionParameters = (session: SessionBody): Record<string, string> => ({
  access_token: session.access_token,
  expires_at: String(session.expires_at),
  expires_in: String(session.expires_in),
  refresh_token: session.refresh_token,
  token_type: session.token_type,
})
