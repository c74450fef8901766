import type { GivenValue, Variable } from './variables.ts'

/** A setting as an administrator sees it: its effective value as text, where that is no secret, and its source. */
export function shownSetting(
  { type, default: fallback, secret = false }: Variable<unknown>,
  given: GivenValue | undefined,
) {
  const value = given?.value ?? fallback ?? null
  return {
    value: value !== null && secret && given ? null : type === 'list' ? value : value && withoutCredentials(value),
    secret,
    source: given?.from ?? (fallback === undefined ? ('unset' as const) : ('default' as const)),
    ...(given && { given_as: given.name }),
  }
}

/**
 * Hides user names, passwords and queries of URLs, where other systems take keys; not for a list, where `?` is a glob.
 * A value that begins as a URL is one, whatever characters they hold. In a text, a URL ends at the first of a few.
 */
const withoutCredentials = (value: string): string =>
  value
    .replace(/^([a-z][a-z\d+.-]*:\/\/)[^/?#]*@/i, '$1…@')
    .replace(/^([a-z][a-z\d+.-]*:\/\/[^?#]*)\?.+/is, '$1?…')
    .replaceAll(/([a-z][a-z\d+.-]*:\/\/)[^\s/?#,|"]*@/gi, '$1…@')
    .replaceAll(/(:\/\/[^\s?#,|"]*)\?[^\s,|"]+/g, '$1?…')
