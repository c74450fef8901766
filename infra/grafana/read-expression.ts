export interface Expression {
  selectors: { name: string; labels: string[] }[]
  /** Labels to group, join or match by. */
  groupings: string[]
}

/** Extracts metrics and labels from a well-formed PromQL expression. */
export function readExpression(expression: string): Expression {
  // Quoted text may contain any syntax.
  const quoted = expression.replaceAll(/"(?:\\.|[^"\\])*"/g, '""')
  // Numbers and durations such as 1e9 and 1h.
  const bare = quoted.replaceAll(/(?<![\w:])\d[\w.]*/g, ' ')
  const groupings: string[] = []
  const rest = bare.replaceAll(/\b(?:by|without|on|ignoring|group_left|group_right)\s*\(([^)]*)\)/g, (_all, labels) => {
    groupings.push(...namesIn(labels))
    return ' '
  })
  const selectors = [...rest.replaceAll(/\[[^\]]*\]/g, ' ').matchAll(/([a-zA-Z_:][\w:]*)\s*(\(|\{[^}]*\})?/g)]
    .filter(([, name = '', after = '']) => after !== '(' && !KEYWORDS.has(name))
    .map(([, name = '', after = '']) => ({ name, labels: namesIn(after.replaceAll('""', '')) }))
  return { selectors, groupings }
}

const KEYWORDS = new Set(['and', 'or', 'unless', 'by', 'without', 'bool', 'offset', 'inf', 'nan'])

const namesIn = (text: string) => text.match(/[a-zA-Z_]\w*/g) ?? []
