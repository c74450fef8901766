import { syntaxError } from './template-error.ts'

/** Literal text, or the inside of `{{ … }}`; `at` is its offset in the source. */
export interface Piece {
  kind: 'text' | 'action'
  text: string
  at: number
}

/** Token of an action. `isApart`: blanks precede it, so that `$ .A` is two values and `$.A` one. */
export interface Token {
  kind: 'string' | 'number' | 'field' | 'variable' | 'word' | 'sign'
  text: string
  at: number
  isApart: boolean
}

/** Splits a source at `{{ … }}`. `{{-` and `-}}` remove the blanks before and after; comments vanish. */
export function splitSource(source: string): Piece[] {
  const pieces: Piece[] = []
  let at = 0
  let trimsNext = false
  while (at < source.length) {
    const open = source.indexOf('{{', at)
    const text = source.slice(at, open === -1 ? undefined : open)
    const trimsThis = open !== -1 && isTrimMarker(source, open + 2)
    const kept = trim(text, trimsNext, trimsThis)
    if (kept !== '') pieces.push({ kind: 'text', text: kept, at })
    if (open === -1) break
    const action = readAction(source, open + (trimsThis ? 3 : 2), open)
    if (action.text !== undefined) pieces.push({ kind: 'action', text: action.text, at: action.at })
    trimsNext = action.trims
    at = action.end
  }
  return pieces
}

/** `{{-3}}` is a number, `{{- 3}}` trims. */
const isTrimMarker = (source: string, at: number) => source[at] === '-' && !/\d/.test(source[at + 1] ?? '')

const trim = (text: string, start: boolean, end: boolean) => {
  const left = start ? text.trimStart() : text
  return end ? left.trimEnd() : left
}

const COMMENT = /\s*\/\*/y
const INSIDE = /"(?:[^"\\\n]|\\[^\n])*"|`[^`]*`|[^"`}]+|\}(?!\})/y

function readAction(source: string, at: number, open: number) {
  COMMENT.lastIndex = at
  if (COMMENT.test(source)) {
    const close = /\*\/\s*(-?)\}\}/g
    close.lastIndex = COMMENT.lastIndex
    const found = close.exec(source)
    if (!found) throw syntaxError(source, open, 'expected "*/}}" at the end of the comment')
    return { text: undefined, at, trims: found[1] === '-', end: close.lastIndex }
  }
  INSIDE.lastIndex = at
  let end = at
  while (INSIDE.test(source)) end = INSIDE.lastIndex
  if (!source.startsWith('}}', end)) {
    const isQuote = source[end] === '"' || source[end] === '`'
    throw syntaxError(source, open, isQuote ? 'expected the closing quote of a text' : 'expected "}}"')
  }
  const text = source.slice(at, end)
  const trims = text.endsWith('-')
  return { text: trims ? text.slice(0, -1) : text, at, trims, end: end + 2 }
}

const TOKEN =
  /(?<string>"(?:[^"\\]|\\.)*"|`[^`]*`)|(?<number>[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)|(?<field>\.[\p{L}_][\p{L}\p{N}_]*)|(?<variable>\$[\p{L}\p{N}_]*)|(?<word>[\p{L}_][\p{L}\p{N}_]*)|(?<sign>:=|[=|(),.])/uy

/** Splits an action into tokens; throws a TemplateError at an unknown character. */
export function tokenize(source: string, { text, at }: Piece): Token[] {
  const tokens: Token[] = []
  let here = 0
  while (true) {
    const blanks = /\s*/y
    blanks.lastIndex = here
    blanks.test(text)
    const isApart = blanks.lastIndex > here
    here = blanks.lastIndex
    if (here === text.length) return tokens
    TOKEN.lastIndex = here
    const found = TOKEN.exec(text)
    if (!found) {
      throw syntaxError(source, at + here, `expected a variable, a text, a number or a function, found "${text[here]}"`)
    }
    const kind = Object.entries(found.groups ?? {}).find(([, value]) => value !== undefined)?.[0] as Token['kind']
    tokens.push({ kind, text: found[0], at: at + here, isApart })
    here = TOKEN.lastIndex
  }
}
