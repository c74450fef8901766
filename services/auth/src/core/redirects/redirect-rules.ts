// Where browsers may be sent after a flow. The one rule: what a browser could read differently from us is refused, whatever
// the allow list says. The list's patterns: allow-list.ts; what a request asks for: http/redirect-target.ts.
import { type Glob, MAX_TARGET_LENGTH, matches, matchesLoopback } from './allow-list.ts'

/** Where a flow may send the browser afterwards: the site itself or a place of the allow list. */
export interface RedirectRules {
  siteUrl: string
  allowList: readonly Glob[]
}

export const isPermitted = (target: string, rules: RedirectRules): boolean => 'rule' in judgeTarget(target, rules)

/** The rule that permits a target, or why none does. */
export type Judgement = { rule: string } | { reason: string }

/** Query parameters that clients take a session from. */
const SESSION_NAMES = ['access_token', 'refresh_token', 'provider_token']

/** As `isPermitted`, in words that an operator can act on (`redirect check`). */
export function judgeTarget(target: string, { siteUrl, allowList }: RedirectRules): Judgement {
  if (target.length > MAX_TARGET_LENGTH) return { reason: `longer than ${MAX_TARGET_LENGTH} characters` }
  // Browsers drop tabs and line ends and turn backslashes into slashes; what they would read differently is refused.
  if (hasControlsOrBackslash(target)) return { reason: 'it holds spaces, control characters or backslashes' }
  if (!URL.canParse(target)) return { reason: 'not an absolute URL' }
  const url = new URL(target)
  if (/^[^/?#]*\/\/[^/?#]*@/.test(target)) return { reason: 'it holds a user name or password' }
  const isWeb = isWebUrl(url)
  // Without its two slashes a browser takes it for a path on the host it is on.
  if (isWeb && !/^https?:\/\/[^/]/i.test(target)) return { reason: 'it has no two slashes before its host' }
  const [withoutFragment = '', ...fragment] = target.split('#')
  // Answers follow a fragment of the target's own: a session of the link's author would come before the user's.
  if (fragment.join('#').includes('=')) return { reason: 'its fragment holds parameters' }
  // Clients read a session from the query too, and before the fragment that ours is in.
  if (SESSION_NAMES.some((name) => url.searchParams.has(name))) return { reason: 'its query holds a session' }
  const site = new URL(siteUrl)
  if (isWeb && isWebUrl(site) && url.hostname === site.hostname) {
    // The specification asks for the host alone; who checks an address is told what that means.
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

/** A target at a loopback address, in the spelling that everything reads alike, and its path. */
const LOOPBACK = /^https?:\/\/(?:127\.0\.0\.1|\[::1\])(?::\d*)?((?:\/[^?]*)?)(?:\?|$)/i

const isWebUrl = ({ protocol }: URL) => protocol === 'http:' || protocol === 'https:'

const hasDotSegments = (target: string) => /\/(\.|%2e){1,2}(\/|$)/i.test(target.split('?', 1)[0] as string)

const isScript = (url: URL) => /^(javascript|data|vbscript|blob|file):$/.test(url.protocol)

function hasControlsOrBackslash(text: string): boolean {
  for (const character of text) if (character <= ' ' || character === '\\' || character === '\x7f') return true
  return false
}

/**
 * The written host is the one that is visited, a name of letters, digits, dots and dashes: no decimal or octal address,
 * no punycode disguise. Others must be listed literally.
 */
function hasPlainHost(target: string, url: URL): boolean {
  const written = /^[a-z]+:\/\/([^/?#:]*)/i.exec(target)?.[1]?.toLowerCase()
  return written === url.hostname && /^(?![\d.]+$)[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(url.hostname)
}
