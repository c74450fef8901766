/** Part of a glob; `text` is one literal character. */
export type GlobPart =
  | { kind: 'text'; text: string }
  | { kind: 'run' | 'star' | 'one' }
  | { kind: 'set'; isNegated: boolean; members: string }

/** Most alternatives of one pattern; adjacent braces multiply. */
const MAX_ALTERNATIVES = 500

/** Expands the braces of a pattern. Throws an Error that does not quote it. */
export function expandGlob(glob: string): GlobPart[][] {
  let expanded: GlobPart[][] = [[]]
  let position = 0
  const readTo = (ends: string): GlobPart[] => {
    const parts: GlobPart[] = []
    while (position < glob.length && !ends.includes(glob[position] as string)) {
      const [part, length] = partAt(glob, position)
      parts.push(part)
      position += length
    }
    return parts
  }
  const append = (choices: GlobPart[][]) => {
    if (expanded.length * choices.length > MAX_ALTERNATIVES) {
      throw new Error(`has a pattern of more than ${MAX_ALTERNATIVES} alternatives`)
    }
    expanded = expanded.flatMap((before) => choices.map((choice) => [...before, ...choice]))
  }
  for (;;) {
    append([readTo('{}')])
    if (position === glob.length) return expanded
    if (glob[position] === '}') throw unbalanced()
    const choices: GlobPart[][] = []
    do {
      position++
      choices.push(readTo('{,}'))
    } while (glob[position] === ',')
    if (glob[position] !== '}') throw unbalanced()
    position++
    append(choices)
  }
}

const unbalanced = () => new Error('has a pattern with unbalanced braces, or with braces in braces')

/** Reads the part at the position; returns it with its length in the pattern. */
function partAt(glob: string, position: number): [GlobPart, number] {
  const character = glob[position] as string
  if (glob.startsWith('**', position)) return [{ kind: 'run' }, 2]
  if (character === '*') return [{ kind: 'star' }, 1]
  if (character === '?') return [{ kind: 'one' }, 1]
  const set = character === '[' ? /^\[(!?)([^\]]+)\]/.exec(glob.slice(position)) : null
  if (set) return [{ kind: 'set', isNegated: set[1] === '!', members: set[2] as string }, set[0].length]
  if (character === '\\' && position + 1 < glob.length) return [{ kind: 'text', text: glob[position + 1] as string }, 2]
  return [{ kind: 'text', text: character }, 1]
}
