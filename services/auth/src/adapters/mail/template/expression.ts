import { FUNCTIONS } from './functions.ts'
import type { Token } from './scan.ts'
import type { TemplateError } from './template-error.ts'

/** Value of an action; the value piped into a call is its last argument. */
export type Expression =
  | { kind: 'dot' }
  | { kind: 'variable'; name: string }
  | { kind: 'literal'; value: unknown }
  | { kind: 'field'; of: Expression; name: string }
  | { kind: 'call'; name: string; arguments: Expression[] }

/** Position in an action's tokens; `fail` makes the error for the next token. */
export interface Cursor {
  tokens: readonly Token[]
  next: number
  /** Variables in scope, as `$x`. */
  variables: readonly string[]
  /** Names of all fields seen, to check that a mail carries its link or code. */
  fields: Set<string>
  fail(expected: string, at?: Token): TemplateError
}

/** Deeper parentheses are an attack on the stack. */
const MAX_DEPTH = 50

export function parsePipeline(cursor: Cursor, depth = 0): Expression {
  if (depth > MAX_DEPTH) throw cursor.fail(`expected at most ${MAX_DEPTH} levels of parentheses`)
  let piped = parseCommand(cursor, undefined, depth)
  while (isSign(cursor, '|')) {
    cursor.next++
    piped = parseCommand(cursor, piped, depth)
  }
  return piped
}

export const isSign = ({ tokens, next }: Cursor, sign: string) =>
  tokens[next]?.kind === 'sign' && tokens[next]?.text === sign

function parseCommand(cursor: Cursor, piped: Expression | undefined, depth: number): Expression {
  const first = cursor.tokens[cursor.next]
  const name = first?.kind === 'word' && Object.hasOwn(FUNCTIONS, first.text) ? first.text : undefined
  if (!name || !first) {
    if (piped) throw cursor.fail('expected a function after "|"')
    const value = parseOperand(cursor, depth)
    if (!endsCommand(cursor)) throw cursor.fail('expected a function before its arguments', first)
    return value
  }
  cursor.next++
  const values: Expression[] = []
  while (!endsCommand(cursor)) values.push(parseOperand(cursor, depth))
  if (piped) values.push(piped)
  const { least, most } = FUNCTIONS[name] as (typeof FUNCTIONS)[string]
  if (values.length < least) throw cursor.fail(`expected at least ${least} argument(s) for ${name}`, first)
  if (values.length > most) throw cursor.fail(`expected at most ${most} argument(s) for ${name}`, first)
  return { kind: 'call', name, arguments: values }
}

const endsCommand = (cursor: Cursor) =>
  cursor.next >= cursor.tokens.length || isSign(cursor, '|') || isSign(cursor, ')')

function parseOperand(cursor: Cursor, depth: number): Expression {
  let value = parseTerm(cursor, depth)
  for (;;) {
    const token = cursor.tokens[cursor.next]
    if (token?.kind !== 'field' || token.isApart) return value
    value = field(cursor, value, token)
  }
}

function field(cursor: Cursor, of: Expression, token: Token): Expression {
  cursor.next++
  const name = token.text.slice(1)
  cursor.fields.add(name)
  return { kind: 'field', of, name }
}

function parseTerm(cursor: Cursor, depth: number): Expression {
  const token = cursor.tokens[cursor.next]
  if (!token) throw cursor.fail('expected a variable, a text, a number or a function')
  if (token.kind === 'field') return field(cursor, { kind: 'dot' }, token)
  if (token.text === '(') return parseParentheses(cursor, depth)
  const value = parseWord(cursor, token)
  cursor.next++
  return value
}

function parseWord(cursor: Cursor, token: Token): Expression {
  switch (token.kind) {
    case 'string':
      return { kind: 'literal', value: unquote(token.text) }
    case 'number':
      return { kind: 'literal', value: Number(token.text) }
    case 'variable':
      if (!cursor.variables.includes(token.text)) {
        throw cursor.fail(`expected ${token.text} to be set before, with {{ ${token.text} := … }}`, token)
      }
      return { kind: 'variable', name: token.text }
    case 'word':
      if (Object.hasOwn(CONSTANTS, token.text)) return { kind: 'literal', value: CONSTANTS[token.text] }
      if (Object.hasOwn(FUNCTIONS, token.text)) return { kind: 'call', name: token.text, arguments: [] }
      throw cursor.fail(`expected a known function, found "${token.text}"`, token)
    default:
      if (token.text === '.') return { kind: 'dot' }
      throw cursor.fail('expected a variable, a text, a number or a function', token)
  }
}

function parseParentheses(cursor: Cursor, depth: number): Expression {
  cursor.next++
  const value = parsePipeline(cursor, depth + 1)
  if (!isSign(cursor, ')')) throw cursor.fail('expected ")"')
  cursor.next++
  return value
}

const CONSTANTS: Record<string, unknown> = { true: true, false: false, nil: undefined }

const ESCAPES: Record<string, string> = { n: '\n', t: '\t', r: '\r' }

const unquote = (text: string) =>
  text.startsWith('`')
    ? text.slice(1, -1)
    : text.slice(1, -1).replaceAll(/\\(.)/g, (_match, character: string) => ESCAPES[character] ?? character)
