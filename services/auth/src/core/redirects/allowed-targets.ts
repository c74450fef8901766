// Redirect targets after a flow. A target that a browser could read differently from us is refused, whatever the allow
// list says.
import { type Glob, MAX_TARGET_LENGTH, matches, matchesLoopback } from './allow-list-patterns.ts'

export interface RedirectRules {
  siteUrl: string
  allowList: readonly Glob[]
}

export const isPermitted = (target: string, rules: RedirectRules): boolean => 'rule' in judgeTarget(target, rules)

export type Judgement = { rule: string } | { reason: string }

/** Query parameters that clients take a session from. */
const SESSION_NAMES = ['access_token', 'refresh_token', 'provider_token']

/** Returns the rule that permits a target, or the reason against it, for operators (`redirect check`). */
export function judgeTarget(target: string, { siteUrl, allowList }: RedirectRules): Judgement {
  if (target.length > MAX_TARGET_LENGTH) return { reason: `longer than ${MAX_TARGET_LENGTH} characters` }
  // Browsers drop tabs and line ends and turn backslashes into slashes.
  if (hasControlsOrBackslash(target)) return { reason: 'it holds spaces, control characters or backslashes' }
  if (UNDERSCORE_IN_SCHEME.test(target)) return { reason: 'its scheme holds an underscore: browsers read it as a path' }
  if (!URL.canParse(target)) return { reason: 'not an absolute URL' }
  const url = new URL(target)
  if (/^[^/?#]*\/\/[^/?#]*@/.test(target)) return { reason: 'it holds a user name or password' }
  const isWeb = isWebUrl(url)
  // Without two slashes a browser reads a path on its present host.
  if (isWeb && !/^https?:\/\/[^/]/i.test(target)) return { reason: 'it has no two slashes before its host' }
  const [withoutFragment = '', ...fragment] = target.split('#')
  // Answers follow the target's own fragment: a session of the link's author would precede the user's.
  if (fragment.join('#').includes('=')) return { reason: 'its fragment holds parameters' }
  // Clients read a session from the query first, and ours is in the fragment.
  if (SESSION_NAMES.some((name) => url.searchParams.has(name))) return { reason: 'its query holds a session' }
  const site = new URL(siteUrl)
  if (isWeb && isWebUrl(site) && url.hostname === site.hostname) {
    // The specification demands only the host.
    const isSame = url.origin === site.origin
    return { rule: `it is on the host of AUTH_SITE_URL${isSame ? '' : ', whose scheme and port do not matter'}` }
  }
  if (isScript(url)) return { reason: `${url.protocol} is never a target` }
  const loopback = isWeb ? LOOPBACK.exec(withoutFragment) : null
  const isDisguised = isWeb && !loopback && !hasPlainHost(target, url)
  // `/app/../x` is `/x` to a browser, whatever pattern it matches.
  if (isWeb && !isDisguised && hasDotSegments(withoutFragment)) return { reason: 'its path holds . or .. segments' }
  const match = allowList.find((glob) => {
    if (loopback) return glob.pattern === withoutFragment || matchesLoopback(glob, url, loopback[1] as string)
    return isDisguised ? glob.pattern === withoutFragment : matches(glob, withoutFragment)
  })
  if (match) return { rule: `AUTH_URI_ALLOW_LIST holds ${match.pattern}` }
  if (loopback) return { reason: 'AUTH_URI_ALLOW_LIST holds no pattern of this loopback address and path' }
  if (isDisguised)
    return { reason: 'its host is an address or not plain letters, and AUTH_URI_ALLOW_LIST does not hold it literally' }
  return { reason: 'it is neither on the host of AUTH_SITE_URL nor matched by AUTH_URI_ALLOW_LIST' }
}

/**
 * Scheme named after an Android package. RFC 3986 3.1 has no underscore; a browser would go to a path of this service.
 */
const UNDERSCORE_IN_SCHEME = /^[a-z][a-z0-9+.-]*_[a-z0-9+._-]*:/i

/** Target at a loopback address, in the spelling that all clients read alike, and its path. */
const LOOPBACK = /^https?:\/\/(?:127\.0\.0\.1|\[::1\])(?::\d*)?((?:\/[^?]*)?)(?:\?|$)/i

const isWebUrl = ({ protocol }: URL) => protocol === 'http:' || protocol === 'https:'

const hasDotSegments = (target: string) => /\/(\.|%2e){1,2}(\/|$)/i.test(target.split('?', 1)[0] as string)

const isScript = (url: URL) => /^(javascript|data|vbscript|blob|file):$/.test(url.protocol)

function hasControlsOrBackslash(text: string): boolean {
  for (const character of text) if (character <= ' ' || character === '\\' || character === '\x7f') return true
  return false
}

/** Whether the written host is the visited one and a plain name: no decimal or octal address, no punycode disguise. */
function hasPlainHost(target: string, url: URL): boolean {
  const written = /^[a-z]+:\/\/([^/?#:]*)/i.exec(target)?.[1]?.toLowerCase()
  return written === url.hostname && /^(?![\d.]+$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(url.hostname)
}
