// Patterns of AUTH_URI_ALLOW_LIST. A wildcard in a web host never matches beyond the host, however the scheme before it
// is written. All rules of targets: allowed-targets.ts. Matching in bounded time: steps.ts.
import { expandGlob, type GlobPart } from './glob-parts.ts'
import { type Step, takesAll } from './steps.ts'

export interface Glob {
  pattern: string
  /** The patterns that its braces expand to. */
  alternatives: readonly Alternative[]
}

interface Alternative {
  steps: readonly Step[]
  /** A pattern that names no host matches no web address. */
  refusesWeb: boolean
  /** Steps for targets at the pattern's loopback address, without port and query. */
  loopback: readonly Step[] | undefined
}

/** Longest target accepted; it travels in a mail link. */
export const MAX_TARGET_LENGTH = 2048

/**
 * Most characters of a pattern, in all its alternatives: 500 of 40 each. A target costs at most one step per character
 * of each; 5 million steps take about a tenth of a second.
 */
const MAX_PATTERN_LENGTH = 20_000

/**
 * Compiles patterns between commas outside braces. Throws an Error that names a malformed or too long one by position.
 */
export function parseAllowList(text: string): Glob[] {
  const patterns = text.match(/(?:\{(?:\\.|[^\\}])*\}|\\.|[^,])+/g) ?? []
  return patterns
    .map((pattern) => pattern.trim())
    .filter(Boolean)
    .map((pattern, index) => {
      const expanded = expandGlob(pattern)
      if (expanded.flat().length > MAX_PATTERN_LENGTH) {
        throw new Error(
          `has a pattern of more than ${MAX_PATTERN_LENGTH} characters in all alternatives: pattern ${index + 1}`,
        )
      }
      return { pattern, alternatives: expanded.map(compile) }
    })
}

/** Whether a target without its fragment matches. */
export const matches = ({ alternatives }: Glob, target: string): boolean =>
  alternatives.some(({ steps, refusesWeb }) => !(refusesWeb && /^https?:/i.test(target)) && takesAll(steps, target))

/** Whether a loopback target matches, with any query and port: native apps get a new port each time (RFC 8252 7.3). */
export function matchesLoopback({ alternatives }: Glob, { protocol, hostname }: URL, path: string): boolean {
  const target = `${protocol}//${hostname}${path || '/'}`
  return alternatives.some(({ loopback }) => loopback !== undefined && takesAll(loopback, target))
}

type Takes = Step['takes']
interface Wildcards {
  /** Characters of `**`; `character`: of `*` and `?`. */
  run: Takes
  character: Takes
  /** Characters that a set may match at most. */
  inSet: Takes
}
const noneOf =
  (characters: string): Takes =>
  (character) =>
    !characters.includes(character)

/**
 * `*`: any run without `.` and `/`; `**`: any run; `?`: one character that is neither; `[a-z]`, `[!x]`, `{a,b}`, `\x`.
 * None of them leaves a web host: `https://**.example.com` cannot match `https://evil.test/.example.com`.
 * Only a final `**` takes everything.
 */
const ANYWHERE: Wildcards = { run: () => true, character: noneOf('./'), inSet: () => true }
const HOST: Wildcards = { run: noneOf('/?#@\\'), character: noneOf('./?#@:\\'), inSet: noneOf('/?#@:\\') }
const SCHEME: Wildcards = {
  run: (character) => /[A-Za-z0-9+.-]/.test(character),
  character: (character) => /[A-Za-z0-9+-]/.test(character),
  inSet: HOST.inSet,
}

/** Loopback addresses in patterns, with any port. */
const LOOPBACK_HOST = /^(127\.0\.0\.1|\[::1\])(:[\d*?]*)?$/

/** Compiles one pattern without braces, which are expanded before: they may hold the end of a scheme or a host. */
function compile(parts: readonly GlobPart[]): Alternative {
  const steps = (from: number, to: number, wildcards: Wildcards) =>
    parts.slice(from, to).map((part) => stepOf(part, wildcards))
  const made = (compiled: readonly Step[], refusesWeb: boolean, loopback?: readonly Step[]): Alternative => ({
    steps: compiled,
    refusesWeb,
    loopback,
  })
  const end = parts.length
  const endsOpen = parts.at(-1)?.kind === 'run'
  const colon = parts.findIndex((_part, i) => [':', '/', '/'].every((text, offset) => isText(parts[i + offset], text)))
  if (colon === -1) {
    // `**` and `https:**` name no host; in any other such pattern the end of the host would be undefined.
    const isPrefix = endsOpen && parts.slice(0, -1).every(({ kind }) => kind === 'text')
    return made(steps(0, end, ANYWHERE), !isPrefix)
  }
  const scheme = steps(0, colon, SCHEME)
  const isWeb = ['http', 'https'].some((name) => takesAll(scheme.map(inAnyCase), name))
  if (!isWeb) return made([...scheme, ...steps(colon, end, ANYWHERE)], true)
  const beforeHost = [...scheme, ...steps(colon, colon + 3, ANYWHERE)]
  const rest = parts.findIndex((part, i) => i >= colon + 3 && ['/', '?', '#'].some((text) => isText(part, text)))
  const hostEnd = rest === -1 ? (endsOpen ? end - 1 : end) : rest
  const compiled = [...beforeHost, ...steps(colon + 3, hostEnd, HOST), ...steps(hostEnd, end, ANYWHERE)]
  const [, loopbackHost] = LOOPBACK_HOST.exec(written(parts.slice(colon + 3, hostEnd))) ?? []
  if (loopbackHost === undefined) return made(compiled, false)
  const query = parts.findIndex((part, i) => i >= hostEnd && isText(part, '?'))
  const path = steps(hostEnd, query === -1 ? end : query, ANYWHERE)
  const host = textSteps(loopbackHost)
  return made(compiled, false, [...beforeHost, ...host, ...(path.length > 0 ? path : textSteps('/'))])
}

const isText = (part: GlobPart | undefined, text: string) => part?.kind === 'text' && part.text === text

const written = (parts: readonly GlobPart[]) => parts.map(writtenPart).join('')

function writtenPart(part: GlobPart): string {
  if (part.kind === 'text') return part.text
  if (part.kind === 'set') return `[${part.isNegated ? '!' : ''}${part.members}]`
  return { run: '**', star: '*', one: '?' }[part.kind]
}

function stepOf(part: GlobPart, wildcards: Wildcards): Step {
  if (part.kind === 'text') return { takes: (character) => character === part.text, repeats: false }
  if (part.kind === 'set') {
    const listed = setExpression(part)
    return { takes: (character) => wildcards.inSet(character) && listed.test(character), repeats: false }
  }
  return { takes: part.kind === 'run' ? wildcards.run : wildcards.character, repeats: part.kind !== 'one' }
}

const textSteps = (text: string): Step[] =>
  [...text].map((character) => stepOf({ kind: 'text', text: character }, HOST))

const inAnyCase = ({ takes, repeats }: Step): Step => ({
  takes: (character) => takes(character.toLowerCase()) || takes(character.toUpperCase()),
  repeats,
})

export function setExpression({ isNegated, members }: Extract<GlobPart, { kind: 'set' }>): RegExp {
  try {
    return new RegExp(`[${isNegated ? '^' : ''}${members.replaceAll(/[\\\]^[]/g, String.raw`\$&`)}]`)
  } catch {
    // The engine's message quotes the pattern.
    throw new Error('has a pattern with a range in brackets that runs backwards')
  }
}
