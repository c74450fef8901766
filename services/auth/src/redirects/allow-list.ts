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
