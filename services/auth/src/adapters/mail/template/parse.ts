import { type Cursor, type Expression, isSign, parsePipeline } from './expression.ts'
import { type Piece, splitSource, tokenize } from './scan.ts'
import { syntaxError } from './template-error.ts'

export type Node =
  | { kind: 'text'; text: string }
  | { kind: 'output'; value: Expression; at: number }
  | { kind: 'assign'; name: string; isNew: boolean; value: Expression }
  | { kind: 'if' | 'with'; name: string | undefined; value: Expression; body: Node[]; otherwise: Node[] }
  | { kind: 'range'; names: string[]; value: Expression; body: Node[]; otherwise: Node[] }

/** Deeper blocks are an attack on the stack. */
const MAX_DEPTH = 50

interface Parser {
  source: string
  pieces: readonly Piece[]
  next: number
  variables: string[]
  fields: Set<string>
}

/** Parses a template to a tree and the names of its fields. Throws a TemplateError that names the line. */
export function parseTemplate(source: string): { nodes: Node[]; fields: ReadonlySet<string> } {
  const parser: Parser = { source, pieces: splitSource(source), next: 0, variables: ['$'], fields: new Set() }
  const { nodes } = parseBody(parser, undefined, 0)
  return { nodes, fields: parser.fields }
}

/** Parses up to `{{ end }}` or `{{ else … }}` of the block opened at `opening`, or to the end of the source. */
function parseBody(parser: Parser, opening: Piece | undefined, depth: number): { nodes: Node[]; end?: Cursor } {
  const nodes: Node[] = []
  for (let piece = parser.pieces[parser.next++]; piece; piece = parser.pieces[parser.next++]) {
    if (piece.kind === 'text') {
      nodes.push({ kind: 'text', text: piece.text })
      continue
    }
    const cursor = cursorAt(parser, piece)
    const word = cursor.tokens[0]?.kind === 'word' ? cursor.tokens[0].text : ''
    if (word === 'end' || word === 'else') {
      if (!opening) throw cursor.fail(`expected {{ if }}, {{ range }} or {{ with }} before {{ ${word} }}`)
      return { nodes, end: cursor }
    }
    nodes.push(isBlock(word) ? parseBlock(parser, cursor, word, piece, depth) : parseAction(parser, cursor, piece))
  }
  if (opening) throw syntaxError(parser.source, opening.at, 'expected {{ end }} for this block')
  return { nodes }
}

const isBlock = (word: string): word is 'if' | 'with' | 'range' => /^(if|with|range)$/.test(word)

function cursorAt(parser: Parser, piece: Piece): Cursor {
  const tokens = tokenize(parser.source, piece)
  const cursor: Cursor = {
    tokens,
    next: 0,
    variables: parser.variables,
    fields: parser.fields,
    fail: (expected, token = tokens[cursor.next]) => syntaxError(parser.source, token?.at ?? piece.at, expected),
  }
  return cursor
}

function parseAction(parser: Parser, cursor: Cursor, { at }: Piece): Node {
  const [name, sign] = cursor.tokens
  const assigns = name?.kind === 'variable' && (sign?.text === ':=' || sign?.text === '=')
  if (!assigns) return { kind: 'output', value: parseWhole(cursor), at }
  const isNew = sign.text === ':='
  if (!isNew && !parser.variables.includes(name.text)) {
    throw cursor.fail(`expected ${name.text} to be set before, with {{ ${name.text} := … }}`)
  }
  cursor.next = 2
  const value = parseWhole(cursor)
  if (isNew) parser.variables.push(name.text)
  return { kind: 'assign', name: name.text, isNew, value }
}

function parseWhole(cursor: Cursor): Expression {
  const value = parsePipeline(cursor)
  if (cursor.next < cursor.tokens.length) throw cursor.fail('expected "}}"')
  return value
}

type BlockKind = 'if' | 'with' | 'range'

function parseBlock(parser: Parser, cursor: Cursor, kind: BlockKind, piece: Piece, depth: number): Node {
  if (depth >= MAX_DEPTH) throw cursor.fail(`expected at most ${MAX_DEPTH} blocks within each other`)
  cursor.next++
  const names = parseNames(cursor, kind)
  const value = parseWhole(cursor)
  const outside = parser.variables.length
  parser.variables.push(...names)
  const { nodes: body, end } = parseBody(parser, piece, depth + 1)
  parser.variables.length = outside + names.length
  const otherwise = end?.tokens[0]?.text === 'else' ? parseElse(parser, end, kind, piece, depth) : requireEnd(end)
  parser.variables.length = outside
  return kind === 'range' ? { kind, names, value, body, otherwise } : { kind, name: names[0], value, body, otherwise }
}

/** `$x :=`, and for range `$key, $item :=`. */
function parseNames(cursor: Cursor, kind: BlockKind): string[] {
  const { tokens, next } = cursor
  const [first, sign, second, after] = tokens.slice(next, next + 4)
  if (first?.kind !== 'variable') return []
  if (sign?.text === ':=') {
    cursor.next += 2
    return [first.text]
  }
  if (kind === 'range' && sign?.text === ',' && second?.kind === 'variable' && after?.text === ':=') {
    cursor.next += 4
    return [first.text, second.text]
  }
  return []
}

function parseElse(parser: Parser, cursor: Cursor, kind: BlockKind, piece: Piece, depth: number): Node[] {
  cursor.next = 1
  const word = cursor.tokens[1]?.text ?? ''
  // `{{ else if }}` is `{{ else }}{{ if }}` that shares its `{{ end }}`.
  if (isBlock(word) && word === kind && kind !== 'range') return [parseBlock(parser, cursor, kind, piece, depth + 1)]
  if (cursor.tokens.length > 1)
    throw cursor.fail(`expected {{ else }}${kind === 'range' ? '' : ` or {{ else ${kind} … }}`}`)
  const { nodes, end } = parseBody(parser, piece, depth + 1)
  if (end?.tokens[0]?.text === 'else') {
    end.next = 0
    throw end.fail('expected {{ end }} after {{ else }}')
  }
  requireEnd(end)
  return nodes
}

function requireEnd(end: Cursor | undefined): [] {
  if (end && (end.tokens.length > 1 || isSign(end, '|'))) throw end.fail('expected {{ end }}')
  return []
}
