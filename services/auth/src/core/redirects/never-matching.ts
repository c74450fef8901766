import { type Glob, setExpression } from './allow-list-patterns.ts'
import { judgeTarget } from './allowed-targets.ts'
import { expandGlob, type GlobPart } from './glob-parts.ts'

/** Site without web addresses, so that the allow list alone decides. */
const NO_SITE = 'none://none'

/** Texts in place of wildcards: one of them makes an address of any pattern that can match one. */
const RUNS = ['a', '', '1', 'https', 'https://a', 'app://a']
const STARS = ['1', 'a', '', 's', 'https']
const ONES = ['a', '1', 's']
/** Characters that a set may list: from `!` to `~`. */
const PRINTABLE = Array.from({ length: 94 }, (_, index) => String.fromCharCode(0x21 + index))

/** Describes each pattern that permits no target, by its position in the list. */
export function neverMatching(allowList: readonly Glob[]): string[] {
  return allowList.flatMap((glob, index) => {
    const reason = reasonAgainst(glob)
    return reason === undefined ? [] : [`AUTH_URI_ALLOW_LIST: pattern ${index + 1} can never match: ${reason}`]
  })
}

/** Returns why the pattern's first example is refused; undefined if any example is permitted. */
function reasonAgainst(glob: Glob): string | undefined {
  let first = glob.pattern.includes('#') ? 'targets are compared without their fragment' : undefined
  for (const target of examplesOf(glob.pattern)) {
    const judgement = judgeTarget(target, { siteUrl: NO_SITE, allowList: [glob] })
    if ('rule' in judgement) return undefined
    first ??= judgement.reason
  }
  return first
}

function* examplesOf(pattern: string): Generator<string> {
  // A literal address: its `?` begins the query.
  if (!pattern.includes('*')) yield pattern
  for (const parts of expandGlob(pattern)) {
    for (const run of RUNS) {
      for (const star of STARS) {
        for (const one of ONES) yield parts.map((part) => exampleOf(part, { run, star, one })).join('')
      }
    }
  }
}

function exampleOf(part: GlobPart, wildcards: Record<'run' | 'star' | 'one', string>): string {
  if (part.kind === 'text') return part.text
  if (part.kind !== 'set') return wildcards[part.kind]
  if (part.members === '::1') return '[::1]'
  const { one } = wildcards
  return [one, ...PRINTABLE].find((character) => setExpression(part).test(character)) ?? one
}
