import type { Expression } from './expression.ts'
import type { Node } from './parse.ts'

/**
 * Lists the variables that a template takes from its root: those of a value inside `with` and `range` are not its own.
 */
export function rootFields(nodes: readonly Node[], isAtRoot = true): string[] {
  const names = nodes.flatMap((node) => {
    if (node.kind === 'text') return []
    const ofValue = fieldsOf(node.value, isAtRoot)
    if (!('body' in node)) return ofValue
    const isBodyAtRoot = isAtRoot && node.kind === 'if'
    return [...ofValue, ...rootFields(node.body, isBodyAtRoot), ...rootFields(node.otherwise, isAtRoot)]
  })
  return [...new Set(names)]
}

function fieldsOf(value: Expression, isAtRoot: boolean): string[] {
  if (value.kind === 'call') return value.arguments.flatMap((each) => fieldsOf(each, isAtRoot))
  if (value.kind !== 'field') return []
  const { of } = value
  const isOfRoot = (of.kind === 'dot' && isAtRoot) || (of.kind === 'variable' && of.name === '$')
  return isOfRoot ? [value.name] : fieldsOf(of, isAtRoot)
}
