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
