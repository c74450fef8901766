import type { FastifyRequest } from 'fastify'

/** Where a flow may send the browser afterwards: the site itself or a place of the allow list. */
export interface RedirectRules {
  siteUrl: string
  allowList: readonly Glob[]
}

/**
 * The first permitted one of header `redirect_to`, query `redirect_to` and `Referer`; else the site URL. Anything not
 * permitted is passed over silently (contract/auth-core.md 4.1).
 */
export function redirectTarget(request: FastifyRequest, rules: RedirectRules): string {
  const query = request.query as { redirect_to?: unknown }
  const candidates = [request.headers.redirect_to, query?.redirect_to, request.headers.referer]
  const target = candidates.find((candidate) => typeof candidate === 'string' && isPermitted(candidate, rules))
  return target === undefined ? rules.siteUrl : asciiUrl(target as string)
}

/** A header is ASCII: other letters are percent-encoded as browsers do it; what is ASCII stays as it was written. */
const asciiUrl = (target: string) => (/^[\x21-\x7e]*$/.test(target) ? target : new URL(target).href)

/** Longest target accepted; it travels in a mail link. */
const MAX_TARGET_LENGTH = 2048

export const isPermitted = (target: string, rules: RedirectRules): boolean => 'rule' in judgeTarget(target, rules)

/** The rule that permits a target, or why none does. */
export type Judgement = { rule: string } | { reason: string }

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
  const site = new URL(siteUrl)
  if (isWeb && isWebUrl(site) && url.hostname === site.hostname) return { rule: 'it is on the host of AUTH_SITE_URL' }
  if (isScript(url)) return { reason: `${url.protocol} is never a target` }
  const [withoutFragment = ''] = target.split('#', 1)
  const isDisguised = isWeb && !hasPlainHost(target, url)
  // `/app/../x` is `/x` to a browser, whatever pattern it matches.
  if (isWeb && !isDisguised && hasDotSegments(withoutFragment)) return { reason: 'its path holds . or .. segments' }
  const match = allowList.find(({ pattern, expression }) =>
    isDisguised ? pattern === withoutFragment : expression.test(withoutFragment),
  )
  if (match) return { rule: `AUTH_URI_ALLOW_LIST holds ${match.pattern}` }
  if (isDisguised)
    return { reason: 'its host is an address or not plain letters, and AUTH_URI_ALLOW_LIST does not hold it literally' }
  return { reason: 'it is neither on the host of AUTH_SITE_URL nor matched by AUTH_URI_ALLOW_LIST' }
}

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

/** A pattern of the allow list, as written and compiled. */
export interface Glob {
  pattern: string
  expression: RegExp
}

/** Splits the setting at commas outside braces and compiles each pattern; throws an Error for one that is malformed. */
export function parseAllowList(text: string): Glob[] {
  const patterns = text.match(/(?:\{[^}]*\}|\\.|[^,])+/g) ?? []
  return patterns
    .map((pattern) => pattern.trim())
    .filter(Boolean)
    .map((pattern) => ({ pattern, expression: globToRegExp(pattern) }))
}

/**
 * `*`: any run without `.` and `/`; `**`: any run; `?`: one character that is neither; `[a-z]`, `[!x]`, `{a,b}`, `\x`. In a
 * web host none of them leaves the host, so that `https://**.example.com` cannot match `https://evil.test/.example.com`;
 * only a `**` that ends the pattern takes everything.
 */
function globToRegExp(pattern: string): RegExp {
  if (!/^[^{}]*(\{[^{}]*\}[^{}]*)*$/.test(pattern)) throw new Error('has a pattern with unbalanced braces')
  const [, scheme = '', host = '', rest = ''] = /^(https?:\/\/)?([^/#]*)(.*)$/is.exec(pattern) ?? []
  const endsOpen = rest === '' && host.endsWith('**')
  const inHost = scheme ? HOST : ANYWHERE
  const source = endsOpen
    ? globSource(scheme, ANYWHERE) + globSource(host.slice(0, -2), inHost) + ANYWHERE.run
    : globSource(scheme, ANYWHERE) + globSource(host, inHost) + globSource(rest, ANYWHERE)
  return new RegExp(`^${source}$`, 's')
}

interface Wildcards {
  /** `**`, and the characters `*` and `?` stand for. */
  run: string
  character: string
}
const ANYWHERE: Wildcards = { run: '.*', character: '[^./]' }
const HOST: Wildcards = { run: '[^/?#@]*', character: '[^./?#@:]' }

function globSource(glob: string, wildcards: Wildcards): string {
  let source = ''
  let isInBraces = false
  for (let i = 0; i < glob.length; i++) {
    const character = glob[i] as string
    const set = character === '[' ? /^\[(!?)([^\]]+)\]/.exec(glob.slice(i)) : null
    if (glob.startsWith('**', i)) {
      source += wildcards.run
      i++
    } else if (character === '*') source += `${wildcards.character}*`
    else if (character === '?') source += wildcards.character
    else if (set) {
      source += `[${set[1] ? '^' : ''}${(set[2] as string).replaceAll(/[\\\]^[]/g, String.raw`\$&`)}]`
      i += set[0].length - 1
    } else if (character === '{' || character === '}') {
      isInBraces = character === '{'
      source += isInBraces ? '(?:' : ')'
    } else if (character === ',' && isInBraces) source += '|'
    else if (character === '\\') source += escapePattern(glob[++i] ?? '\\')
    else source += escapePattern(character)
  }
  return source
}

const escapePattern = (text: string) => text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`)
