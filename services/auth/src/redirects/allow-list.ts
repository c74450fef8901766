// The patterns of AUTH_URI_ALLOW_LIST. The one rule: what a pattern says of a web host holds for the host, so that no
// wildcard in it can leave the host, however the scheme before it is written. Who asks: redirect-rules.ts.
import { expandGlob, type GlobPart } from './glob-parts.ts'

/** A pattern of the allow list, as written and compiled. */
export interface Glob {
  pattern: string
  expression: RegExp
}

/**
 * Splits the setting at commas outside braces and compiles each pattern; throws an Error for one that is malformed, which
 * does not quote it.
 */
export function parseAllowList(text: string): Glob[] {
  const patterns = text.match(/(?:\{(?:\\.|[^\\}])*\}|\\.|[^,])+/g) ?? []
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
  const alternatives = expandGlob(pattern)
  try {
    return new RegExp(`^(?:${alternatives.map(sourceOf).join('|')})$`, 's')
  } catch {
    // The engine's message quotes the pattern.
    throw new Error('has a pattern with a range in brackets that runs backwards')
  }
}

interface Wildcards {
  /** `**`, and the characters `*` and `?` stand for. */
  run: string
  character: string
  /** Before a set: what it cannot match, whatever it lists. */
  guard: string
}
const ANYWHERE: Wildcards = { run: '.*', character: '[^./]', guard: '' }
const HOST: Wildcards = { run: '[^/?#@\\\\]*', character: '[^./?#@:\\\\]', guard: '(?![/?#@:\\\\])' }
const SCHEME: Wildcards = { run: '[A-Za-z0-9+.-]*', character: '[A-Za-z0-9+-]', guard: '(?![/?#@:\\\\])' }

/** Schemes are read without case, and so is this. */
const NOT_WEB = '(?![hH][tT][tT][pP][sS]?:)'

/** One pattern without braces: those are taken apart before, since one of them may hold the end of a scheme or a host. */
function sourceOf(parts: readonly GlobPart[]): string {
  const source = (from: number, to: number, wildcards: Wildcards) =>
    parts
      .slice(from, to)
      .map((part) => partSource(part, wildcards))
      .join('')
  const end = parts.length
  const endsOpen = parts.at(-1)?.kind === 'run'
  const colon = parts.findIndex((_part, i) => [':', '/', '/'].every((text, offset) => isText(parts[i + offset], text)))
  if (colon === -1) {
    // `**` and `https:**` name no host at all; anything else would leave open where the host ends.
    const isPrefix = endsOpen && parts.slice(0, -1).every(({ kind }) => kind === 'text')
    return (isPrefix ? '' : NOT_WEB) + source(0, end, ANYWHERE)
  }
  const scheme = source(0, colon, SCHEME)
  const isWeb = ['http', 'https'].some((name) => new RegExp(`^${scheme}$`, 'i').test(name))
  if (!isWeb) return `${NOT_WEB}${scheme}:\\/\\/${source(colon + 3, end, ANYWHERE)}`
  const rest = parts.findIndex((part, i) => i >= colon + 3 && ['/', '?', '#'].some((text) => isText(part, text)))
  if (rest !== -1) return `${scheme}:\\/\\/${source(colon + 3, rest, HOST)}${source(rest, end, ANYWHERE)}`
  return `${scheme}:\\/\\/${endsOpen ? source(colon + 3, end - 1, HOST) + ANYWHERE.run : source(colon + 3, end, HOST)}`
}

const isText = (part: GlobPart | undefined, text: string) => part?.kind === 'text' && part.text === text

function partSource(part: GlobPart, wildcards: Wildcards): string {
  switch (part.kind) {
    case 'run':
      return wildcards.run
    case 'star':
      return `${wildcards.character}*`
    case 'one':
      return wildcards.character
    case 'set':
      return `${wildcards.guard}[${part.isNegated ? '^' : ''}${part.members.replaceAll(/[\\\]^[]/g, String.raw`\$&`)}]`
    case 'text':
      return part.text.replaceAll(/[.*+?^${}()|[\]\\/-]/g, String.raw`\$&`)
  }
}
