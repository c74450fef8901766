// Patterns of AUTH_URI_ALLOW_LIST. The one rule: a wildcard in a web host never matches beyond the host, however the scheme before
// it is written. Callers: redirect-rules.ts. Matching in bounded time: steps.ts.
import { expandGlob, type GlobPart } from './glob-parts.ts'
import { mostAlive, type Step, takesAll } from './steps.ts'

export interface Glob {
  pattern: string
  /** The patterns that its braces expand to. */
  alternatives: readonly Alternative[]
}

interface Alternative {
  prefix: string
  steps: readonly Step[]
  /** A pattern that names no host matches no web address. */
  refusesWeb: boolean
  /** Steps for targets at the pattern's loopback address, without port and query. */
  loopback: readonly Step[] | undefined
}

/** Longest target accepted; it travels in a mail link. */
export const MAX_TARGET_LENGTH = 2048

/** Most steps of one target: 5 million take about a tenth of a second, and a request has three targets. */
const MAX_STEPS = 5_000_000

/** Compiles patterns between commas outside braces. Throws an Error without quoting a malformed or too costly one. */
export function parseAllowList(text: string): Glob[] {
  const patterns = text.match(/(?:\{(?:\\.|[^\\}])*\}|\\.|[^,])+/g) ?? []
  const allowList = patterns
    .map((pattern) => pattern.trim())
    .filter(Boolean)
    .map((pattern) => ({ pattern, alternatives: expandGlob(pattern).map(compile) }))
  if (mostSteps(allowList) > MAX_STEPS) {
    throw new Error(
      'has too many long patterns with a wildcard near their beginning: one target could stop the service',
    )
  }
  return allowList
}

/** Whether a target without its fragment matches. */
export const matches = ({ alternatives }: Glob, target: string): boolean =>
  alternatives.some(
    ({ prefix, steps, refusesWeb }) =>
      target.startsWith(prefix) && !(refusesWeb && /^https?:/i.test(target)) && takesAll(steps, target),
  )

/** Whether a loopback target matches, with any query and port: native apps get a new port each time (RFC 8252 7.3). */
export function matchesLoopback({ alternatives }: Glob, { protocol, hostname }: URL, path: string): boolean {
  const target = `${protocol}//${hostname}${path || '/'}`
  return alternatives.some(({ loopback }) => loopback !== undefined && takesAll(loopback, target))
}

/** Calculates the most steps of one target, at a loopback address or elsewhere. */
export function mostSteps(allowList: readonly Glob[]): number {
  const alternatives = allowList.flatMap((glob) => glob.alternatives)
  // A target at a loopback address is compared with all patterns of such addresses, whatever their port.
  const atLoopback = alternatives.reduce((sum, { loopback }) => sum + (loopback ? mostAlive(loopback) : 0), 0)
  return Math.max(atLoopback, mostAliveTogether(alternatives)) * MAX_TARGET_LENGTH
}

/** Patterns with contradicting prefixes are never all compared: those count that a single text can begin with. */
function mostAliveTogether(all: readonly Alternative[]): number {
  const alternatives = all.toSorted((one, other) =>
    one.prefix < other.prefix ? -1 : Number(one.prefix > other.prefix),
  )
  const together: Alternative[] = []
  let alive = 0
  let most = 0
  for (const alternative of alternatives) {
    for (let last = together.at(-1); last && !alternative.prefix.startsWith(last.prefix); last = together.at(-1)) {
      together.pop()
      alive -= mostAlive(last.steps)
    }
    together.push(alternative)
    alive += mostAlive(alternative.steps)
    most = Math.max(most, alive)
  }
  return most
}

/** Describes the cost of the longest target for `config check`. */
export function worstCases(allowList: readonly Glob[]): string[] {
  if (allowList.length === 0) return []
  const written = (globs: readonly Glob[]) => mostSteps(globs).toLocaleString('en')
  const patterns = allowList.map((glob, index) => `  pattern ${index + 1}: ${written([glob])}`)
  return [`AUTH_URI_ALLOW_LIST: a target costs at most ${written(allowList)} steps`, ...patterns]
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
 * `*`: any run without `.` and `/`; `**`: any run; `?`: one character that is neither; `[a-z]`, `[!x]`, `{a,b}`, `\x`. In a
 * web host none of them leaves the host: `https://**.example.com` cannot match `https://evil.test/.example.com`. Only a final
 * `**` takes everything.
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
  const firstWildcard = parts.findIndex(({ kind }) => kind !== 'text')
  const made = (compiled: readonly Step[], refusesWeb: boolean, loopback?: readonly Step[]): Alternative => ({
    prefix: written(firstWildcard === -1 ? parts : parts.slice(0, firstWildcard)),
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
  if (part.kind === 'text') return { takes: (character) => character === part.text, repeats: false, text: part.text }
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
